"""`harness export`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.cli.options import Only, complete_run, complete_suite
from harness.cli.results import StoredPanel
from harness.domain import Language, UsageError
from harness.domain.options import RunFolders
from harness.languages import GPU_LANGUAGE
from harness.report.values import count


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
    from harness.pipeline.data_folders import find_suite_folder, list_run_problems
    from harness.report.export.table_files import export_to_tracker
    from harness.store.runs import find_run, read_manifest

    if bool(only_suite) == bool(only_run):
        raise UsageError("export either problems, with --suite NAME, or a run, with --run NAME")
    folders = {suite: find_suite_folder(suite, paths.problems_dir) for suite in only_suite or ()}
    if other_format == "harbor":
        _export_harbor(folders, target, language, device, image)
        return
    if other_format in ("wandb", "mlflow"):
        if only_run is None:
            raise UsageError(f"{other_format} takes results, not problems: name a run with --run")
        typer.echo(export_to_tracker(other_format, str(target), only_run, stored.results_dir, paths.generated_dir))
        return
    if other_format == "flashinfer-bench":
        if only_run is None:
            raise UsageError("problems are not exported as definitions: name a run with --run")
        run_dir = find_run(paths.generated_dir, only_run)
        suite_dir = find_suite_folder(read_manifest(run_dir).suite, paths.problems_dir)
        traces, left_out = export_traces(run_dir, suite_dir, stored.results_dir, target)
        typer.echo(f"{count(traces, 'trace')} in {target}")
        if left_out:
            what = f"{count(left_out, 'evaluation')} without a verdict on the program (not_run, errors)"
            typer.echo(f"left out: {what}", err=True)
        _print_other_workloads(count_left_out(stored.results_dir, read_manifest(run_dir)))
    elif only_run is not None:
        run_dir = find_run(paths.generated_dir, only_run)
        problems = list_run_problems(read_manifest(run_dir), paths.problems_dir)
        exported = export_run(run_dir, problems, stored.results_dir, target, level)
        _print_other_workloads(exported.left_out)
        typer.echo(f"{count(exported.kernels, 'kernel')} in {target}; results: {exported.origin}")
    else:
        typer.echo(f"{count(export_problems(folders, target, level), 'problem')} in {target}")


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
    from harness.problems.discovery import find_suite
    from harness.service.adapters.harbor import HarborTask, choose_device, export_task

    if not folders:
        raise UsageError("the format harbor has tasks, not runs: name a suite with --suite")
    problems = [problem for folder in folders.values() for problem in find_suite(folder)]
    for problem in problems:
        task = HarborTask(problem=problem, language=language, device=device or choose_device(language), image=image)
        export_task(task, target)
    typer.echo(f"{len(problems)} tasks in {target}; build the image {image} from the Dockerfile of this project")
