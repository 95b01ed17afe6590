"""Imports problems, and runs with their kernels and reported results, which stay beside the kernels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import harness
from harness.domain import Candidate, Completion, Language, Prompt, RunManifest, SampleKey, UsageError
from harness.formats.kernelbench.claims import StoredClaims, write_claims
from harness.formats.kernelbench.format import (
    EVAL_RESULTS,
    BenchKernel,
    Claim,
    keep_semantics,
    list_claims,
    name_suite,
    number_names,
    read_json_object,
    read_problems,
    write_bytes,
)
from harness.problems.discovery import list_files
from harness.store.runs import (
    check_name,
    has_sample,
    hold_run,
    load_sample,
    locate_run,
    write_manifest,
    write_sample,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProblems:
    """`counts` are problems per suite. `renamed` holds (old name, new name) of names that cannot be folder names."""

    counts: Counter[str]
    renamed: tuple[tuple[str, str], ...]


def import_problems(source: Path, suite: str, folder: Path) -> ImportedProblems:
    """Raises UsageError before anything is written."""
    sources, renamed = {}, []
    for problem in read_problems(source):
        name = check_name("problem", _make_name(problem.stem))
        if name != problem.stem:
            renamed.append((problem.stem, name))
        path = folder / check_name("suite", name_suite(suite, problem.level)) / f"{name}.py"
        sources[path] = keep_semantics(problem.code).encode()
    for path, content in sources.items():
        if path.is_file() and path.read_bytes() != content:
            raise UsageError(f"{path} exists and differs: move it away, or choose another --suite")
    for path, content in sources.items():
        write_bytes(path, content)
    return ImportedProblems(counts=Counter(path.parent.name for path in sources), renamed=tuple(renamed))


def _make_name(stem: str) -> str:
    """Replace path separators, which `check_name` refuses."""
    return re.sub(r"[^A-Za-z0-9_.+=@,/\\-]+", "_", stem)[:200]


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
    folder = _import_kernels(name, suite, kernels, names, settings)
    if not (results or times):
        return ImportedRun(name=name, folder=folder, kernels=len(kernels), claims=None, mismatches=())
    write_claims(folder, reported)
    return ImportedRun(
        name=name,
        folder=folder,
        kernels=len(kernels),
        claims=list_claims(results, times, reported.level),
        mismatches=tuple(_list_mismatches(results, times.get(f"level{reported.level}"), suite, names)),
    )


def _import_kernels(
    name: str, suite: str, kernels: Sequence[BenchKernel], names: Mapping[int, str], settings: RunImport
) -> Path:
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
    if has_sample(run_dir, key):
        stored = load_sample(run_dir, key).candidate
        if stored is None or stored.source != source:
            raise UsageError(f"{key} is stored with another program: choose another --run name")
    write_sample(
        run_dir,
        key=key,
        prompt=Prompt(name=manifest.prompt, problem=key.problem, language=manifest.language, text=""),
        completion=Completion(text=None),
        candidate=Candidate(source=source, language=manifest.language, rule="imported"),
        provenance={"suite": manifest.suite, "model": manifest.model, "provider": manifest.provider},
    )


def _find_names(suite: str, numbers: Collection[int], settings: RunImport) -> dict[int, str]:
    """Raises UsageError if a name is missing."""
    try:
        folder = settings.find_suite(suite)
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
