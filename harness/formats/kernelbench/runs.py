"""Imports runs with their kernels and reported results, which stay beside the kernels."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import Candidate, Language, SampleKey, UsageError
from harness.formats.imported import read_json_object
from harness.formats.kernelbench.format import (
    EVAL_RESULTS,
    BenchKernel,
    Claim,
    StoredClaims,
    list_claims,
    name_suite,
    number_names,
    write_claims,
)
from harness.formats.storing import make_manifest, store_run
from harness.problems.discovery import list_files
from harness.store.runs import locate_run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunImport:
    """`run` None uses the source's name. `baseline` is a file of baseline times. `find_suite` raises UsageError."""

    run: str | None
    suite: str
    model: str
    language: Language
    baseline: Path | None
    generated_dir: Path
    find_suite: Callable[[str], Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    name: str
    folder: Path
    kernels: int
    claims: tuple[Claim, ...] | None
    mismatches: tuple[str, ...]


def import_runs(source: Path, kernels: Sequence[BenchKernel], settings: RunImport) -> Iterator[ImportedRun]:
    """Make one run per level, since a run has one suite. Raises UsageError."""
    levels = sorted({kernel.level for kernel in kernels})
    results = read_json_object(source / EVAL_RESULTS) if (source / EVAL_RESULTS).is_file() else {}
    if results and len(levels) > 1:
        raise UsageError(
            f"{source} holds kernels of levels {', '.join(map(str, levels))}, but its {EVAL_RESULTS} names no "
            "level: put each level into a separate folder"
        )
    times = read_json_object(settings.baseline) if settings.baseline else {}
    for level in levels:
        chosen = [kernel for kernel in kernels if kernel.level == level]
        name = (settings.run or source.resolve().name) + (f"-level{level}" if len(levels) > 1 else "")
        yield _import_level(
            name, chosen, StoredClaims(format="kernelbench", level=level, results=results, baseline=times), settings
        )


def _import_level(
    name: str, kernels: Sequence[BenchKernel], reported: StoredClaims, settings: RunImport
) -> ImportedRun:
    suite, results, times = name_suite(settings.suite, reported.level), reported.results, reported.baseline
    names = _find_names(suite, {kernel.number for kernel in kernels}, settings)
    run_dir = locate_run(settings.generated_dir, name)
    manifest = make_manifest(
        name,
        suite=suite,
        model=settings.model,
        provider="kernelbench",
        language=settings.language,
        samples=max(kernel.sample for kernel in kernels) + 1,
        problems=tuple(dict.fromkeys(names[kernel.number] for kernel in kernels)),
    )
    keys = (SampleKey(run=name, problem=names[kernel.number], sample=kernel.sample) for kernel in kernels)
    candidates = (Candidate(source=one.source, language=manifest.language, rule="imported") for one in kernels)
    store_run(run_dir, manifest, ((key, candidate, "") for key, candidate in zip(keys, candidates, strict=True)))
    claims, mismatches = None, tuple[str, ...]()
    if results or times:
        write_claims(run_dir, reported)
        claims = list_claims(results, times, reported.level)
        mismatches = tuple(_list_mismatches(results, times.get(f"level{reported.level}"), suite, names))
    return ImportedRun(name=name, folder=run_dir, kernels=len(kernels), claims=claims, mismatches=mismatches)


def _find_names(suite: str, numbers: Collection[int], settings: RunImport) -> dict[int, str]:
    """Raises UsageError if a name is missing."""
    try:
        folder = settings.find_suite(suite)
    except UsageError as error:
        raise UsageError(f"import the problems of the run first, harness import FOLDER: {error}") from error
    named = {number: name for name, (number, _) in number_names(path.stem for path in list_files(folder)).items()}
    missing = sorted(set(numbers) - named.keys())
    if missing:
        raise UsageError(
            f"the run does not match the suite {suite}: it has kernels for {len(numbers)} problems, and {folder} has "
            f"no problem with the number {_list_some(missing)} (it has {_list_some(sorted(named))}). "
            "Import the problems first, or name the run's suite with --suite"
        )
    return named


def _list_mismatches(results: Mapping[str, Any], times: Any, suite: str, names: Mapping[int, str]) -> Iterator[str]:
    lacking = sorted(int(key) for key in results if key.isdecimal() and int(key) not in names)
    if lacking:
        yield f"the results include problems that {suite} lacks: {_list_some(lacking)}"
    stems = {str(name).removesuffix(".py") for name in times} if isinstance(times, dict) else set()
    others = sorted(stems - set(names.values()))
    if others:
        yield (
            f"the baseline times include problems that {suite} lacks or names differently: "
            f"{_list_some(others)}. Reported speedups match by number only"
        )


def _list_some(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "")
