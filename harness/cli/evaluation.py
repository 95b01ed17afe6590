"""Evaluates stored samples or one file for a command: what is to be done, progress on stderr, results into the store.

Shared by `harness evaluate`, `harness run` and `harness regress`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.folders import find_folder
from harness.domain import (
    EMULATED,
    Baseline,
    Candidate,
    Evaluation,
    Language,
    Outcome,
    Problem,
    Sample,
    SampleKey,
    Subject,
    UsageError,
    WorkloadName,
)
from harness.problems.find import find_problem
from harness.store.generated import find_run, load_samples, read_manifest

if TYPE_CHECKING:
    from harness.executors.local import LocalExecutor, LocalSettings, Task
    from harness.store.results import ResultStore

FILE_RUN = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """The options of `harness evaluate` as typed. See `evaluate` for each."""

    device: str = "auto"
    gpu: str | None = None
    check_kernels: bool | None = None
    workload: WorkloadName | None = None  # None: full, or what the emulated device can do
    baseline: Baseline = "eager"
    again: bool = False
    measure_time: bool = True
    allow_load: bool = False
    call_timeout_s: float = 60.0
    build_timeout_s: float = 600.0
    architecture: str | None = None
    jobs: int | None = None
    confinement: str = "auto"
    results_dir: Path = Path("results")
    generated_dir: Path = Path("generated")
    problems_dir: Path | None = None
    cache_dir: Path | None = None
    cache_size: str | None = None  # None: as HARNESS_CACHE_SIZE says


@dataclass(slots=True, kw_only=True)
class EvaluationReport:
    """What one command did. `evaluations` are the new ones with their ids, `skipped` were there already."""

    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    without_workload: list[str] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        return sum(evaluation.outcome is outcome for _, evaluation in self.evaluations)


def evaluate_tasks(tasks: Sequence[Task], options: EvaluateOptions) -> EvaluationReport:
    """Judges what has not been judged yet and records each verdict the moment it is there; rewrites the CSV files.

    Raises HarnessError; KeyboardInterrupt on Ctrl-C. What was recorded before either stays, and is in the CSV files.
    """
    # The judge's own threads must not spin beside a worker that is being timed; torch reads this when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from harness.executors.local import LocalExecutor
    from harness.report.csv_files import write_csvs
    from harness.store.results import ResultStore

    report = EvaluationReport()
    with ResultStore.open(options.results_dir) as store, LocalExecutor(_local_settings(options)) as executor:
        try:
            wanted = list(_choose_wanted(tasks, options, executor, store, report))
            _run(executor, wanted, store, report)
        finally:
            write_csvs(store, options.results_dir, generated_dir=options.generated_dir)
    return report


def sample_tasks(runs: Iterable[str], options: EvaluateOptions) -> list[Task]:
    """One task per stored sample of the named runs. Raises UsageError for an unknown run or problem."""
    tasks = []
    for run in runs:
        run_dir = find_run(options.generated_dir, run)
        suite = read_manifest(run_dir).suite
        problems: dict[str, Problem] = {}
        for sample in load_samples(run_dir):
            name = sample.key.problem
            if name not in problems:
                problems[name] = find_problem(name, find_suite_folder(suite, options.problems_dir))
            tasks.append(_make_task(sample, problems[name], options))
    return tasks


def file_task(file: Path, problem: str, language: Language, suite: str, options: EvaluateOptions) -> Task:
    """A task for a program in a file that no run produced."""
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the candidate {file}: {error}") from error
    found = find_problem(problem, find_suite_folder(suite, options.problems_dir))
    sample = Sample(
        key=SampleKey(run=FILE_RUN, problem=found.name, sample=0),
        model=file.name,
        prompt="-",
        suite=found.suite,
        language=language,
        completion=None,
        candidate=Candidate(source=source, language=language, rule="file"),
    )
    return _make_task(sample, found, options)


def guess_language(source: str) -> Language:
    """cuda if the program passes CUDA sources or defines a kernel, otherwise cpp."""
    return "cuda" if "__global__" in source or "cuda_sources" in source else "cpp"


def find_suite_folder(suite: str, problems_dir: Path | None) -> Path:
    """The folder of a suite; one that does not exist is named when a problem is looked for in it."""
    return find_folder("reference_models", problems_dir, option="--problems-dir") / suite


def _make_task(sample: Sample, problem: Problem, options: EvaluateOptions) -> Task:
    from harness.executors.local import NO_DEVICE, Task

    subject = Subject(
        run=sample.key.run,
        sample=sample.key.sample,
        turn=sample.key.turn,
        model=sample.model,
        prompt=sample.prompt,
        suite=sample.suite,
        problem=problem.name,
        problem_digest=problem.digest,
        candidate_digest=sample.candidate.digest if sample.candidate else "",
        language=sample.language,
        device=NO_DEVICE,
        workload=options.workload or "full",
        baseline=options.baseline,
    )
    return Task(subject=subject, problem=problem, candidate=sample.candidate)


def _choose_wanted(
    tasks: Sequence[Task],
    options: EvaluateOptions,
    executor: LocalExecutor,
    store: ResultStore,
    report: EvaluationReport,
) -> Iterator[Task]:
    """What is to be judged: not what has a verdict already, nor what has no such workload."""
    from dataclasses import replace

    for task in tasks:
        device = executor.device_name(task.subject.language)
        workload = _choose_workload(task.problem, device, options)
        problem = _provide_workload(task.problem, workload)
        if problem is None:
            report.without_workload.append(task.problem.name)
            continue
        subject = replace(task.subject, device=device, workload=workload)
        stored = None if options.again else store.find(subject)
        if stored is not None and _still_holds(stored.evaluation, executor.emulated_gpu(subject.language)):
            report.skipped.append(stored.id)
            continue
        yield replace(task, subject=subject, problem=problem)


def _choose_workload(problem: Problem, device: str, options: EvaluateOptions) -> WorkloadName:
    """What was asked for, or else what is scored; on the emulated device the most that it can do."""
    if options.workload is not None or device != EMULATED:
        return options.workload or "full"
    return "small" if problem.workload("small") is not None else "reduced"


@cache
def _provide_workload(problem: Problem, workload: WorkloadName) -> Problem | None:
    """The problem, cut down if that is what is wanted. None: it has no such workload."""
    if workload != "reduced":
        return problem if problem.workload(workload) is not None else None
    from harness.problems.reduce import EMULATED_BUDGET, reduce_problem

    return reduce_problem(problem, EMULATED_BUDGET)


def _still_holds(evaluation: Evaluation, emulated_gpu: str) -> bool:
    """Whether a stored verdict need not be made again: on the emulated device, only one about the same GPU."""
    known = dict(evaluation.environment).get("emulated_gpu", "")
    return evaluation.outcome is not Outcome.HARNESS_ERROR and known == emulated_gpu


def _run(executor: LocalExecutor, tasks: Sequence[Task], store: ResultStore, report: EvaluationReport) -> None:
    if not tasks:
        return
    with _show_progress(len(tasks), executor) as advance:

        def take(stage: str, task: Task, evaluation: Evaluation | None) -> None:
            if evaluation is not None:
                source = task.candidate.source if task.candidate else None
                report.evaluations.append((store.record(evaluation, source), evaluation))
            advance(stage, report)

        executor.run(tasks, take)


@contextmanager
def _show_progress(total: int, executor: LocalExecutor) -> Iterator[Callable[[str, EvaluationReport], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<8}"), BarColumn(bar_width=8), TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )  # fmt: skip
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True)) as progress:
        build = progress.add_task("building", total=total, note=describe_builds({}, total))
        judge = progress.add_task("judging", total=total, note=f"0 of {total}")

        def advance(stage: str, report: EvaluationReport) -> None:
            done = len(report.evaluations)
            before = int(progress.tasks[build].completed)
            if before < total:  # later on, what is found in the cache was built just now
                ready = max(before + (stage == "build"), done)
                progress.update(build, completed=ready, note=describe_builds(executor.build_counts, total - ready))
            if stage == "judge":
                note = f"{done} of {total}, {report.count(Outcome.CORRECT)} correct"
                progress.update(judge, completed=done, note=note)

        yield advance


def describe_builds(counts: dict[str, int], waiting: int) -> str:
    """Builds so far in a few words: what was built, found in the cache, and failed, and how many candidates wait."""
    failed = sum(counts.get(status, 0) for status in ("failed", "refused", "timeout"))
    return f"{counts.get('built', 0)} built, {counts.get('cached', 0)} cached, {failed} failed, {waiting} waiting"


def _local_settings(options: EvaluateOptions) -> LocalSettings:
    from harness.build.cache import read_cache_size
    from harness.executors.local import LocalSettings
    from harness.judge.evaluate import JudgeSettings
    from harness.judge.session import TimeLimits
    from harness.judge.timing import TimingPlan

    limits = TimeLimits(call_s=options.call_timeout_s)
    plan = TimingPlan(allow_load=options.allow_load)
    return LocalSettings(
        device=options.device,
        gpu=options.gpu,
        check_kernels=options.check_kernels,
        architecture=options.architecture,
        jobs=options.jobs,
        cache=options.cache_dir,
        confinement=options.confinement,
        build_timeout_s=options.build_timeout_s,
        max_cache_bytes=read_cache_size(options.cache_size or os.environ.get("HARNESS_CACHE_SIZE")),
        judge=JudgeSettings(limits=limits, plan=plan, measure_time=options.measure_time),
    )
