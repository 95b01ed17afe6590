"""Exports problems, and runs with their kernels, results and baseline times."""

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import Evaluation, Outcome, RunManifest, Sample, Timing, UsageError
from harness.formats.imported import write_bytes
from harness.formats.kernelbench.format import (
    BASELINE_TIMES,
    EVAL_RESULTS,
    UNTIMED,
    BenchKernel,
    BenchProblem,
    drop_semantics,
    find_level,
    number_names,
    read_claims,
    write_kernels,
    write_problems,
)
from harness.problems.discovery import list_files
from harness.store.results import ResultFilter, ResultStore
from harness.store.runs import load_samples, read_manifest

_NOT_COMPILED = (Outcome.NO_CODE, Outcome.REJECTED, Outcome.BUILD_ERROR, Outcome.LOAD_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    kernels: int
    left_out: int
    origin: str


def export_problems(folders: Mapping[str, Path], target: Path, level: int | None) -> int:
    """`level` applies to a suite without one in its name. Return the number of problems. Raises UsageError."""
    problems = []
    for suite, folder in folders.items():
        paths = {path.stem: path for path in list_files(folder)}
        for stem, (number, name) in number_names(paths).items():
            code = drop_semantics(paths[stem].read_bytes().decode("utf-8-sig"))
            problems.append(BenchProblem(level=_choose_level(suite, level), number=number, name=name, code=code))
    numbers = [problem.place for problem in problems]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"the suites {', '.join(folders)} share numbers within a level: export them separately")
    write_problems(problems, target)
    return len(problems)


def export_run(
    run_dir: Path, problems: Iterable[str], results_dir: Path, target: Path, level: int | None
) -> ExportedRun:
    """Export results measured here, else those reported with the import. Raises UsageError."""
    manifest = read_manifest(run_dir)
    chosen = _choose_level(manifest.suite, level)
    numbered = {stem: (number, f"{number}_{name}.py") for stem, (number, name) in number_names(problems).items()}
    kernels = _make_kernels(load_samples(run_dir), chosen, numbered)
    evaluations = load_evaluations(results_dir, manifest)
    claims = read_claims(run_dir)
    if evaluations or claims is None:
        results, baseline = _make_results(evaluations, numbered), _make_baseline(evaluations, chosen, numbered)
    else:
        results, baseline = claims.results, claims.baseline
    write_kernels(kernels, target)
    for name, record in ((EVAL_RESULTS, results), (BASELINE_TIMES, baseline)):
        if record:
            write_bytes(target / name, (json.dumps(record, indent=4) + "\n").encode())
    origin = "measured here" if evaluations else "reported with the import" if claims else "none"
    return ExportedRun(kernels=len(kernels), left_out=count_left_out(results_dir, manifest), origin=origin)


def _choose_level(suite: str, level: int | None) -> int:
    found = find_level(suite)
    return level if level is not None else 1 if found is None else found


def _make_kernels(samples: list[Sample], level: int, numbered: dict[str, tuple[int, str]]) -> list[BenchKernel]:
    latest = {(sample.key.problem, sample.key.sample): sample for sample in samples if sample.candidate}
    kernels = []
    for (problem, number), sample in latest.items():
        if problem not in numbered:
            raise UsageError(f"problem {problem} of run {sample.key.run} is no longer in its suite: it has no number")
        if sample.candidate:
            position = numbered[problem][0]
            kernels.append(BenchKernel(level=level, number=position, sample=number, source=sample.candidate.source))
    return kernels


def load_evaluations(results_dir: Path, manifest: RunManifest) -> list[Evaluation]:
    """Return the latest of each sample's last turn on the full workload in the run's dtype, timed ones first."""
    with ResultStore.open(results_dir, read_only=True) as store:
        stored = [one.evaluation for one in store.load_all(ResultFilter(run=manifest.run, workload="full"))]
    same = [one for one in stored if one.subject.dtype == manifest.dtype]
    order = sorted(same, key=lambda one: (one.subject.turn, one.timing is not None))
    return [*{(one.subject.problem, one.subject.sample): one for one in order}.values()]


def count_left_out(results_dir: Path, manifest: RunManifest) -> int:
    exported, where = ("full", manifest.dtype), ResultFilter(run=manifest.run)
    with ResultStore.open(results_dir, read_only=True) as store:
        return sum(row != exported for row in store.values(("workload", "dtype"), where))


def _make_results(evaluations: list[Evaluation], numbered: dict[str, tuple[int, str]]) -> dict[str, Any]:
    results: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(evaluations, key=lambda one: (numbered.get(one.subject.problem, (0, ""))[0], one.subject.sample)):
        if one.outcome.counts_against_model and one.subject.problem in numbered:
            results.setdefault(str(numbered[one.subject.problem][0]), []).append(_describe(one))
    return results


def _describe(one: Evaluation) -> dict[str, Any]:
    timing = one.timing if one.speedup is not None else None
    return {
        "sample_id": one.subject.sample,
        "compiled": one.outcome not in _NOT_COMPILED,
        "correctness": one.outcome is Outcome.CORRECT,
        "metadata": {
            "hardware": one.hardware,
            "device": one.subject.device,
            "harness_outcome": one.outcome.value,
            "harness_message": one.message,
        },
        "runtime": timing.candidate_us / 1000 if timing else UNTIMED,
        "runtime_stats": _make_stats([block.candidate_reported_us for block in timing.blocks], one) if timing else {},
    }


def _make_baseline(
    evaluations: list[Evaluation], level: int, numbered: dict[str, tuple[int, str]]
) -> dict[str, dict[str, Any]]:
    timed: dict[str, list[tuple[Timing, Evaluation]]] = {}
    for one in evaluations:
        if one.timing is not None and one.speedup is not None and one.subject.problem in numbered:
            timed.setdefault(numbered[one.subject.problem][1], []).append((one.timing, one))
    stats = {}
    for name, measured in sorted(timed.items()):
        timing, one = sorted(measured, key=lambda entry: entry[0].baseline_us)[len(measured) // 2]
        stats[name] = _make_stats([block.baseline_reported_us for block in timing.blocks] or [timing.baseline_us], one)
    return {f"level{level}": stats} if stats else {}


def _make_stats(times_us: list[float], one: Evaluation) -> dict[str, Any]:
    times_ms = [time_us / 1000 for time_us in times_us]
    if not times_ms:
        return {}
    return {
        "mean": statistics.fmean(times_ms),
        "std": statistics.pstdev(times_ms),
        "min": min(times_ms),
        "max": max(times_ms),
        "num_trials": len(times_ms),
        "hardware": one.hardware,
        "device": one.subject.device,
    }
