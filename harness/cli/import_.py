"""`harness import`. Results reported with a run are stored beside it, never as results of this harness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.domain import Language, UsageError
from harness.domain.options import RunFolders
from harness.languages import GPU_LANGUAGE
from harness.pipeline.data_folders import SUITES, find_suite_folder

if TYPE_CHECKING:
    from harness.formats.kernelbench.format import Claim

FormatOption = Annotated[Literal["kernelbench"], typer.Option("--format", help="The other format.")]


# Not called `suite`, `run` or `model`, so that settings for `generate` in harness.toml do not apply.
def import_(
    source: Annotated[Path, typer.Argument(help="A folder with level1/ etc., a Parquet file, or a run's folder.")],
    *,
    other_format: FormatOption,
    as_suite: Annotated[
        str, typer.Option("--suite", help="Levels become the suites <SUITE>_level1 etc.")
    ] = "kernelbench",
    as_run: Annotated[str | None, typer.Option("--run", help="Name of the run. [default: the folder's]")] = None,
    as_model: Annotated[str, typer.Option("--model", help="Model that wrote the run's kernels.")] = "imported",
    as_language: Annotated[Language, typer.Option("--language", help="Language of the kernels.")] = GPU_LANGUAGE,
    baseline_times: Annotated[
        Path | None, typer.Option("--baseline-times", help="Baseline timing JSON, for the reported speedups.")
    ] = None,
    paths: RunFolders,
) -> None:
    """Import problems, or a run with its kernels and reported results.

    Imported results are only reported; `harness evaluate` measures them here.

    Example: git clone https://github.com/ScalingIntelligence/KernelBench;
    harness import --format kernelbench KernelBench/KernelBench
    """
    from harness.formats.kernelbench.format import read_kernels
    from harness.formats.kernelbench.runs import RunImport, import_problems, import_runs

    if not source.exists():
        raise UsageError(f"{source} does not exist: give a folder or a Parquet file")
    kernels = read_kernels(source) if source.is_dir() else ()
    if not kernels:
        folder = paths.problems_dir or Path(SUITES)
        imported = import_problems(source, as_suite, folder)
        for name, count in sorted(imported.counts.items()):
            typer.echo(f"{count} problems in {folder / name}: harness problems check --suite {name}")
        for before, after in imported.renamed:
            typer.echo(f"renamed {before!r} to {after!r}: problem names are used as folder names", err=True)
        return
    settings = RunImport(
        run=as_run,
        suite=as_suite,
        model=as_model,
        language=as_language,
        baseline=baseline_times,
        generated_dir=paths.generated_dir,
        find_suite=partial(find_suite_folder, problems_dir=paths.problems_dir),
    )
    for run in import_runs(source, kernels, settings):
        typer.echo(f"{run.kernels} kernels in {run.folder}: harness evaluate {run.name}")
        if run.claims is not None:
            _print_claims(run.claims)
        for mismatch in run.mismatches:
            typer.echo(mismatch, err=True)


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
