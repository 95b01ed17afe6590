"""`harness import`. Results reported with a run are stored beside it, never as results of this harness."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.options import GeneratedDirOption, ProblemsDirOption
from harness.domain import Language, UsageError
from harness.pipeline.data_folders import SUITES, find_suite_folder

if TYPE_CHECKING:
    from harness.domain import RunManifest, SampleKey
    from harness.kernelbench.format import BenchKernel, Claim

FormatOption = Annotated[Literal["kernelbench"], typer.Option("--format", help="The other format.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunImport:
    run: str | None
    suite: str
    model: str
    language: Language
    baseline: Path | None
    generated_dir: Path
    problems_dir: Path | None


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
    as_language: Annotated[Language, typer.Option("--language", help="Language of the kernels.")] = "cuda",
    baseline_times: Annotated[
        Path | None, typer.Option("--baseline-times", help="Baseline timing JSON, for the reported speedups.")
    ] = None,
    generated_dir: GeneratedDirOption = Path("generated"),
    problems_dir: ProblemsDirOption = None,
) -> None:
    """Import problems, or a run with its kernels and reported results.

    Imported results are only reported; `harness evaluate` measures them here.

    Example: harness import --format kernelbench KernelBench/KernelBench
    """
    from harness.kernelbench.format import read_kernels

    if not source.exists():
        raise UsageError(f"{source} does not exist: give a folder or a Parquet file")
    kernels = read_kernels(source) if source.is_dir() else ()
    if not kernels:
        _import_problems(source, as_suite, problems_dir or Path(SUITES))
        return
    settings = RunImport(
        run=as_run,
        suite=as_suite,
        model=as_model,
        language=as_language,
        baseline=baseline_times,
        generated_dir=generated_dir,
        problems_dir=problems_dir,
    )
    _import_runs(source, kernels, settings)


def _import_problems(source: Path, suite: str, folder: Path) -> None:
    from collections import Counter

    from harness.kernelbench.format import keep_semantics, name_suite, read_problems, write_bytes
    from harness.store.runs import check_name

    problems = read_problems(source)
    sources = {}
    for problem in problems:
        name = check_name("problem", problem.stem)
        path = folder / check_name("suite", name_suite(suite, problem.level)) / f"{name}.py"
        sources[path] = keep_semantics(problem.code).encode()
    for path, content in sources.items():
        if path.is_file() and path.read_bytes() != content:
            raise UsageError(f"{path} exists and differs: move it away, or choose another --suite")
    for path, content in sources.items():
        write_bytes(path, content)
    for name, count in sorted(Counter(path.parent.name for path in sources).items()):
        typer.echo(f"{count} problems in {folder / name}: harness problems check --suite {name}")


def _import_runs(source: Path, kernels: Sequence[BenchKernel], settings: RunImport) -> None:
    """One run per level, since a run has one suite."""
    from harness.kernelbench.claims import StoredClaims, write_claims
    from harness.kernelbench.format import EVAL_RESULTS, list_claims, name_suite, read_json_object

    levels = sorted({kernel.level for kernel in kernels})
    results = read_json_object(source / EVAL_RESULTS) if (source / EVAL_RESULTS).is_file() else {}
    if results and len(levels) > 1:
        raise UsageError(
            f"{source} holds kernels of levels {', '.join(map(str, levels))}, but its {EVAL_RESULTS} names no "
            "level: put each level into a separate folder"
        )
    times = read_json_object(settings.baseline) if settings.baseline else {}
    for level in levels:
        suite = name_suite(settings.suite, level)
        chosen = [kernel for kernel in kernels if kernel.level == level]
        names = _find_names(settings.problems_dir, suite, {kernel.number for kernel in chosen})
        name = (settings.run or source.resolve().name) + (f"-level{level}" if len(levels) > 1 else "")
        run_dir = _import_run(name, suite, chosen, names, settings)
        typer.echo(f"{len(chosen)} kernels in {run_dir}: harness evaluate {name}")
        if results or times:
            write_claims(run_dir, StoredClaims(format="kernelbench", level=level, results=results, baseline=times))
            _print_claims(list_claims(results, times, level))
            _print_mismatches(results, times.get(f"level{level}"), suite, names)


def _import_run(
    name: str, suite: str, kernels: Sequence[BenchKernel], names: Mapping[int, str], settings: RunImport
) -> Path:
    import harness
    from harness.domain import RunManifest, SampleKey
    from harness.store.runs import hold_run, locate_run, write_manifest

    run_dir = locate_run(settings.generated_dir, name)
    manifest = RunManifest(
        run=name,
        suite=suite,
        model=settings.model,
        provider="kernelbench",
        prompt="imported",
        language=settings.language,
        samples=max(kernel.sample for kernel in kernels) + 1,
        temperature=None,
        problems=tuple(dict.fromkeys(names[kernel.number] for kernel in kernels)),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        harness_version=harness.__version__,
    )
    with hold_run(run_dir):
        write_manifest(run_dir, manifest)
        for kernel in kernels:
            key = SampleKey(run=name, problem=names[kernel.number], sample=kernel.sample)
            _import_sample(run_dir, key, kernel.source, manifest)
    return run_dir


def _import_sample(run_dir: Path, key: SampleKey, source: str, manifest: RunManifest) -> None:
    """Prompt and completion are unknown."""
    from harness.domain import Candidate, Completion, Prompt
    from harness.store.runs import write_sample

    _check_unchanged(run_dir, key, source)
    write_sample(
        run_dir,
        key=key,
        prompt=Prompt(name=manifest.prompt, problem=key.problem, language=manifest.language, text=""),
        completion=Completion(text=None),
        candidate=Candidate(source=source, language=manifest.language, rule="imported"),
        provenance={"suite": manifest.suite, "model": manifest.model, "provider": manifest.provider},
    )


def _check_unchanged(run_dir: Path, key: SampleKey, source: str) -> None:
    from harness.store.runs import has_sample, load_sample

    if has_sample(run_dir, key):
        stored = load_sample(run_dir, key).candidate
        if stored is None or stored.source != source:
            raise UsageError(f"{key} is stored with another program: choose another --run name")


def _find_names(problems_dir: Path | None, suite: str, numbers: Collection[int]) -> dict[int, str]:
    """Names by number. Raises UsageError if one is missing."""
    from harness.kernelbench.format import number_names
    from harness.problems.discovery import list_files

    try:
        folder = find_suite_folder(suite, problems_dir)
    except UsageError as error:
        raise UsageError(f"import the problems first, with the same --suite: {error}") from error
    named = {number: name for name, (number, _) in number_names(path.stem for path in list_files(folder)).items()}
    missing = sorted(set(numbers) - named.keys())
    if missing:
        raise UsageError(
            f"the run does not match the suite {suite}: it has kernels for {len(numbers)} problems, and {folder} has "
            f"no problem with the number {_list_some(missing)} (it has {_list_some(sorted(named))}). "
            "Import the problems first, or name the run's suite with --suite"
        )
    return named


def _print_mismatches(results: Mapping[str, Any], times: Any, suite: str, names: Mapping[int, str]) -> None:
    lacking = sorted(int(key) for key in results if key.isdecimal() and int(key) not in names)
    if lacking:
        typer.echo(f"the results include problems that {suite} lacks: {_list_some(lacking)}", err=True)
    stems = {str(name).removesuffix(".py") for name in times} if isinstance(times, dict) else set()
    others = sorted(stems - set(names.values()))
    if others:
        typer.echo(
            f"the baseline times include problems that {suite} lacks or names differently: "
            f"{_list_some(others)}. Reported speedups match by number only",
            err=True,
        )


def _list_some(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "")


def _print_claims(claims: Sequence[Claim]) -> None:
    from harness.report.escaping import make_printable

    correct = [claim for claim in claims if claim.correct]
    speedups = [claim.speedup for claim in correct if claim.speedup is not None]
    fast = sum(speedup > 1 for speedup in speedups)
    chips = ", ".join(sorted({claim.hardware for claim in claims} - {""}))
    hardware = make_printable(chips.replace("\n", " "))[:60] or "unknown hardware"
    typer.echo(f"reported by others ({hardware}), not measured here: {len(correct)} of {len(claims)} correct")
    if speedups:
        typer.echo(f"reported by others, not measured here: {fast} of {len(claims)} faster than the baseline")
