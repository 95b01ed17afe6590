"""`harness import`. Results reported with a run are stored beside it, never as results of this harness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import Panel
from harness.domain import Language, UsageError
from harness.domain.options import RunFolders, option
from harness.formats.imported import FormatName
from harness.languages import GPU_LANGUAGE
from harness.pipeline.data_folders import SUITES, find_suite_folder
from harness.report.values import count

if TYPE_CHECKING:
    from harness.formats.imported import Imported
    from harness.formats.kernelbench.format import Claim

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
        Path,
        typer.Argument(metavar="SOURCE", help="A checkout or folder in another format, or a Parquet file."),
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
    from harness.report.values import make_printable

    correct = [claim for claim in claims if claim.correct]
    speedups = [claim.speedup for claim in correct if claim.speedup is not None]
    fast = sum(speedup > 1 for speedup in speedups)
    chips = ", ".join(sorted({claim.hardware for claim in claims} - {""}))
    hardware = make_printable(chips.replace("\n", " "))[:60] or "unknown hardware"
    typer.echo(f"reported by others ({hardware}), not measured here: {len(correct)} of {len(claims)} correct")
    if speedups:
        typer.echo(f"reported by others, not measured here: {fast} of {len(claims)} faster than the baseline")
