"""`harness report`, `export`, `import`: results that others reported are stored apart from those measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.analysis.metrics import parse_prices
from harness.capture.options import FOLDER
from harness.cli.options import Only, Panel, Without, complete_run, complete_suite, print_records
from harness.cli.results import AsJson, StoredPanel
from harness.domain import Language, UsageError
from harness.domain.options import RunFolders, option
from harness.formats.imported import FormatName, Imported
from harness.languages import GPU_LANGUAGE, LANGUAGES
from harness.pipeline.data_folders import SUITES, find_suite_folder, list_run_problems, list_suite_roots
from harness.problems.discovery import find_suite
from harness.report.values import count, make_printable
from harness.store.queries import ResultFilter
from harness.store.runs import find_run, read_manifest

if TYPE_CHECKING:
    from harness.formats.kernelbench.format import Claim
    from harness.report.html.page import ReportChoice, ReportPage

MEGABYTE = 1_000_000
DEFAULT_PORT = 8701


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs; * and ? are wildcards.", autocompletion=complete_run),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    where: Annotated[ResultFilter, Without("only_run", "only_outcome", "own_kernels")],
    title: Annotated[str, typer.Option(envvar="HARNESS_TITLE", help="The page's title. [default: the runs]")] = "",
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=IN/OUT", help="US dollars per million prompt and answer tokens. Repeatable."),
    ] = None,
    max_mb: Annotated[
        float, typer.Option(min=0, help="Drop answers, then details, beyond this size; 0 for no limit.")
    ] = 30.0,
    is_live: Annotated[
        bool,
        typer.Option("--serve", help="Show the page at http://127.0.0.1:PORT/, with new evaluations as they come."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="NUMBER", help="With --serve; 0 for any.")
    ] = DEFAULT_PORT,
    captured_dir: Annotated[Path, typer.Option(help="Folder of captured models.", metavar="DIR")] = FOLDER,
    as_json: AsJson = False,
    folders: StoredPanel,
    paths: Annotated[RunFolders, Only("problems_dir")],
) -> None:
    """Write one HTML file for offline use: leaderboard, charts, and a page per candidate.

    Example: harness report my-run other-run -o report.html

    With costs: harness report --price 'gpt-5*=1.25/10'

    While a run works: harness report my-run --serve
    """
    from harness.report.html.page import ReportChoice, render_report
    from harness.store.results import ResultStore

    choice = ReportChoice(
        runs=runs or (),
        where=where,
        generated_dir=folders.generated_dir,
        problems_dirs=(*list_suite_roots(paths.problems_dir), captured_dir),
        captured_dir=captured_dir,
        prices=parse_prices(price),
        title=title,
        max_bytes=round(max_mb * MEGABYTE) or None,
    )
    if is_live:
        _serve(folders.results_dir, choice, port, as_json=as_json)
        return
    with ResultStore.open(folders.results_dir, read_only=True) as store:
        page = render_report(store, output, choice, now=datetime.now(UTC))
    _print_summary(output, page, as_json=as_json)


def _serve(results_dir: Path, choice: ReportChoice, port: int, *, as_json: bool) -> None:
    """Return after Ctrl-C, which is the usual end."""
    from harness.report.html.page import LivePage, LiveServer

    with LiveServer(LivePage(results_dir, choice), port) as server, suppress(KeyboardInterrupt):
        if as_json:
            print_records({"address": server.address})
        else:
            typer.echo(f"{server.address} shows evaluations as they are stored, until Ctrl-C")
        server.serve_forever()


def _print_summary(path: Path, page: ReportPage, *, as_json: bool) -> None:
    if as_json:
        counts = {name: getattr(page, name) for name in ("evaluations", "with_details", "with_answer", "size_bytes")}
        print_records({"path": str(path), **counts})
        return
    size = f"{page.size_bytes / MEGABYTE:,.1f} MB"
    typer.echo(f"{path}: {count(page.evaluations, 'evaluation')}, {size}. Open it in a browser.")
    if page.with_answer < page.evaluations:
        typer.echo(
            f"To stay within --max-mb, {page.evaluations - page.with_answer:,} lack their answer and "
            f"{page.evaluations - page.with_details:,} their details; choose fewer runs, or a larger file."
        )


def export(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="Output folder; for problems also a .parquet file; wandb: project; mlflow: experiment.",
        ),
    ],
    *,
    other_format: Annotated[
        Literal["kernelbench", "flashinfer-bench", "harbor", "wandb", "mlflow"],
        typer.Option("--format", help="The other format, or a tracker of experiments."),
    ],
    only_suite: Annotated[
        list[str] | None,
        typer.Option("--suite", help="Export these problems. Repeatable.", autocompletion=complete_suite),
    ] = None,
    only_run: Annotated[
        str | None,
        typer.Option("--run", help="Export this run: kernels, results, baseline times.", autocompletion=complete_run),
    ] = None,
    language: Annotated[Language, typer.Option(help="harbor: language of the programs.")] = GPU_LANGUAGE,
    device: Annotated[
        str | None,
        typer.Option(metavar="DEVICES", help="harbor: the verifier's device. [default: the language's first]"),
    ] = None,
    image: Annotated[str, typer.Option(metavar="TAG", help="harbor: container image of this project.")] = "harness",
    level: Annotated[
        int | None,
        typer.Option("--level", min=0, help="kernelbench: level of a suite without one in its name. [default: 1]"),
    ] = None,
    stored: Annotated[StoredPanel, Only("results_dir")],
    paths: RunFolders,
) -> None:
    """Export problems, or a run, also to Weights & Biases or MLflow.

    A run's results are those measured here; those reported with an imported run are exported if it was not evaluated.

    Example: harness export --format kernelbench --run my-run exported

    Tasks for agents: harness export --format harbor --suite core tasks

    A table and the report: harness export --format wandb --run my-run PROJECT
    """
    from harness.formats.definitions.traces import export_traces
    from harness.formats.kernelbench.export import count_left_out, export_problems, export_run
    from harness.report.export.table_files import export_to_tracker

    if bool(only_suite) == bool(only_run):
        raise UsageError("export either problems, with --suite NAME, or a run, with --run NAME")
    folders = {suite: find_suite_folder(suite, paths.problems_dir) for suite in only_suite or ()}
    if other_format == "harbor":
        _export_harbor(folders, target, language, device, image)
    elif only_run is None and other_format == "kernelbench":
        typer.echo(f"{count(export_problems(folders, target, level), 'problem')} in {target}")
    elif only_run is None:
        what = f"{other_format} takes results, not problems"
        if other_format == "flashinfer-bench":
            what = "problems are not exported as definitions"
        raise UsageError(f"{what}: name a run with --run")
    elif other_format in ("wandb", "mlflow"):
        typer.echo(export_to_tracker(other_format, str(target), only_run, stored.results_dir, paths.generated_dir))
    elif other_format == "kernelbench":
        run_dir = find_run(paths.generated_dir, only_run)
        problems = list_run_problems(read_manifest(run_dir), paths.problems_dir)
        exported = export_run(run_dir, problems, stored.results_dir, target, level)
        _print_other_workloads(exported.left_out)
        typer.echo(f"{count(exported.kernels, 'kernel')} in {target}; results: {exported.origin}")
    else:
        run_dir = find_run(paths.generated_dir, only_run)
        suite_dir = find_suite_folder(read_manifest(run_dir).suite, paths.problems_dir)
        traces, left_out = export_traces(run_dir, suite_dir, stored.results_dir, target)
        typer.echo(f"{count(traces, 'trace')} in {target}")
        if left_out:
            what = f"{count(left_out, 'evaluation')} without a verdict on the program (not_run, errors)"
            typer.echo(f"left out: {what}", err=True)
        _print_other_workloads(count_left_out(stored.results_dir, read_manifest(run_dir)))


def _print_other_workloads(left_out: int) -> None:
    if left_out:
        what = "evaluation of another workload" if left_out == 1 else "evaluations of other workloads"
        typer.echo(
            f"left out: {left_out} {what} than full, or in another dtype, which the format does not distinguish",
            err=True,
        )


def _export_harbor(
    folders: Mapping[str, Path], target: Path, language: Language, device: str | None, image: str
) -> None:
    from harness.service.adapters.harbor import HarborTask, export_task

    if not folders:
        raise UsageError("the format harbor has tasks, not runs: name a suite with --suite")
    problems = [problem for folder in folders.values() for problem in find_suite(folder)]
    device = device or LANGUAGES[language].devices[0]
    for problem in problems:
        task = HarborTask(problem=problem, language=language, device=device, image=image)
        export_task(task, target)
    typer.echo(f"{len(problems)} tasks in {target}; build the image {image} from the Dockerfile of this project")


MAX_NOTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Panel):
    has_variables = False

    # Not called `suite`, `run` or `model`, so that settings for `generate` in harness.toml do not apply.
    as_suite: str | None = option(None, "Name of the suite, or its beginning. [default: the format's]", "--suite")
    as_run: str | None = option(None, "Name of the run. [default: by suite or folder]", "--run")
    as_model: str = option("imported", "kernelbench: model that wrote the run's kernels.", "--model")
    as_language: Language = option(GPU_LANGUAGE, "kernelbench: language of the kernels.", "--language")
    baseline_times: Path | None = option(None, "kernelbench: baseline timing JSON, for reported speedups.")


def import_(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A checkout or folder in another format, or a Parquet file.")
    ],
    *,
    other_format: Annotated[
        FormatName | None, typer.Option("--format", help="The other format. [default: recognised by its files]")
    ] = None,
    names: Names,
    paths: RunFolders,
) -> None:
    """Import problems, and solutions as runs.

    Reads KernelBench, KernelBench-Verified, flashinfer-bench, SOL-ExecBench and gpu-mode's reference-kernels. Results
    in them are only reported; `harness evaluate` measures them here. A KernelBench checkout brings the runs in its
    runs/.

    Example: git clone https://github.com/ScalingIntelligence/KernelBench; harness import KernelBench
    """
    import_source(source, paths, other_format, names)


def import_source(
    source: Path, paths: RunFolders, other_format: FormatName | None = None, names: Names = Names()
) -> list[str]:
    """Return the names of the runs. Raises UsageError."""
    from harness.formats.kernelbench.format import list_run_folders, read_kernels
    from harness.formats.table import recognise

    chosen, root = recognise(source, other_format)
    suite = names.as_suite or chosen.suite
    is_kernelbench = chosen.name == "kernelbench" and root.is_dir()
    if is_kernelbench and read_kernels(root):
        return _import_runs(source, names.as_run, suite, names, paths)
    runs = _store(chosen.read(root, suite), paths, names.as_run, checks="kernelbench" not in chosen.name)
    folders = list_run_folders(source) if is_kernelbench else []
    for folder in folders:
        run = names.as_run if names.as_run is None or len(folders) == 1 else f"{names.as_run}-{folder.name}"
        try:
            runs += _import_runs(folder, run, suite, names, paths)
        except UsageError as error:
            typer.echo(f"note: {folder} is left out: {error}", err=True)
    return runs


def _import_runs(folder: Path, run: str | None, suite: str, names: Names, paths: RunFolders) -> list[str]:
    """Raises UsageError."""
    from harness.formats.kernelbench.format import read_kernels
    from harness.formats.kernelbench.runs import RunImport, import_runs

    settings = RunImport(
        run=run,
        suite=suite,
        model=names.as_model,
        language=names.as_language,
        baseline=names.baseline_times,
        generated_dir=paths.generated_dir,
        find_suite=partial(find_suite_folder, problems_dir=paths.problems_dir),
    )
    runs = []
    for one in import_runs(folder, read_kernels(folder), settings):
        runs.append(one.name)
        typer.echo(f"{count(one.kernels, 'kernel')} in {one.folder}: harness evaluate {one.name}")
        if one.claims is not None:
            _print_claims(one.claims)
        for mismatch in one.mismatches:
            typer.echo(mismatch, err=True)
    return runs


def _store(imported: Imported, paths: RunFolders, run: str | None, *, checks: bool) -> list[str]:
    """Raises UsageError if nothing is left to store."""
    from harness.formats.storing import store_problems, store_solutions

    folder = paths.problems_dir or Path(SUITES)
    stored = store_problems(imported.problems, folder, checks=checks)
    notes = (*imported.notes, *stored.refused)
    for note in notes[:MAX_NOTES]:
        typer.echo(f"note: {note}", err=True)
    if len(notes) > MAX_NOTES:
        typer.echo(f"note: and {len(notes) - MAX_NOTES} more", err=True)
    if not stored.problems:
        raise UsageError("nothing was imported: no problem can be evaluated here")
    for before, after in stored.renamed:
        typer.echo(f"renamed {before!r} to {after!r}: problem names are used as folder names", err=True)
    for name, number in sorted(Counter(suite for suite, _ in stored.problems).items()):
        typer.echo(f"{count(number, 'problem')} in {folder / name}: harness problems check --suite {name}")
    solutions = [one for one in imported.solutions if (one.suite, one.problem) in stored.problems]
    runs = list(store_solutions(solutions, paths.generated_dir, run))
    for one in runs:
        typer.echo(f"{count(one.candidates, 'candidate')} in {one.folder}: harness evaluate {one.name}")
    return [one.name for one in runs]


def _print_claims(claims: Sequence[Claim]) -> None:
    correct = [claim for claim in claims if claim.correct]
    speedups = [claim.speedup for claim in correct if claim.speedup is not None]
    fast = sum(speedup > 1 for speedup in speedups)
    chips = ", ".join(sorted({claim.hardware for claim in claims} - {""}))
    hardware = make_printable(chips.replace("\n", " "))[:60] or "unknown hardware"
    typer.echo(f"reported by others ({hardware}), not measured here: {len(correct)} of {len(claims)} correct")
    if speedups:
        typer.echo(f"reported by others, not measured here: {fast} of {len(claims)} faster than the baseline")
