"""Evaluates stored samples or a file for `harness evaluate`, `run` and `regress`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, get_args

import typer

from harness.domain import (
    EMULATED,
    FIDELITY,
    FILE_RUN,
    NO_DEVICE,
    Candidate,
    DeviceError,
    Evaluation,
    Fidelity,
    Language,
    Outcome,
    Problem,
    Sample,
    Subject,
    UsageError,
    WorkloadName,
)
from harness.generate.extraction.notes import note_sample
from harness.languages import detect_language
from harness.pipeline.candidate_file import name_candidate, read_candidate
from harness.pipeline.data_folders import find_named_problem
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.run_problems import find_run_problem
from harness.problems.apart import describe_inputs
from harness.problems.workloads import describe_lacking_workload, provide_workload
from harness.report.terminal.progress import Step, read_steps, show_steps
from harness.store.reservations import Reservations
from harness.store.runs import find_run, load_samples, read_manifest, require_unedited

if TYPE_CHECKING:
    from harness.executors.cluster.executor import RayExecutor
    from harness.executors.executor import DeviceFacts, Executor
    from harness.executors.local import LocalExecutor
    from harness.executors.tasks import Task
    from harness.generate.sampler import Plan
    from harness.pipeline.provenance import Provenance
    from harness.store.results import ResultStore

_FIDELITIES = get_args(Fidelity)
POLL_S = 0.2  # for the end of another process


@dataclass(slots=True, kw_only=True)
class EvaluationReport:
    """`skipped`: ids found in the store; `elsewhere`: ids made by another process meanwhile."""

    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    without_workload: list[str] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        return sum(evaluation.outcome is outcome for _, evaluation in self.evaluations)


def evaluate_tasks(
    tasks: Sequence[Task], options: EvaluateOptions, executor: Executor | None = None
) -> EvaluationReport:
    """Evaluates and records tasks without a stored result; rewrites the CSV files. None: an executor of its own.

    Raises HarnessError, also after a device loss, and KeyboardInterrupt; recorded results stay.
    """
    from harness.report.export.csv_files import write_csvs
    from harness.store.results import ResultStore

    report = EvaluationReport()
    expected_builds = sum(task.builds_extensions for task in tasks)
    with (
        ResultStore.open(options.results_dir) as store,
        open_executor(options, expected_builds) if executor is None else nullcontext(executor) as used,
    ):
        provenance = open_provenance(store, options)
        try:
            wanted = order_by_duration(_choose_wanted(tasks, options, used, store, report), store)
            _run(used, wanted, options, provenance, report)
        finally:
            write_csvs(store, options.results_dir, generated_dir=options.generated_dir)
    return report


def sample_tasks(runs: Iterable[str], options: EvaluateOptions) -> list[Task]:
    """One task per stored sample. Raises UsageError."""
    tasks = []
    for run in runs:
        run_dir = find_run(options.generated_dir, run)
        manifest = read_manifest(run_dir)
        problems: dict[str, Problem] = {}
        for sample in load_samples(run_dir):
            require_unedited(run_dir, sample)
            name = sample.key.problem
            if name not in problems:
                problems[name] = find_run_problem(run_dir, manifest, name, options.problems_dir)
            tasks.append(make_sample_task(sample, problems[name], options))
    return tasks


def check_plan(plan: Plan, options: EvaluateOptions) -> None:
    """Raises if the plan cannot be evaluated here. Problems without the workload are named on stderr."""
    from harness.problems.steps import set_reference_limit
    from harness.sandbox.devices import find_device

    set_reference_limit(options.reference_timeout_s)
    opened = find_device(options.device, plan.manifest.language, options.gpu)
    device = "" if opened is None else opened.name
    lacking = []
    for problem in plan.problems:
        workload = choose_workload(problem, device, options)
        provided = provide_workload(problem, workload, plan.manifest.language)
        if provided is None:
            lacking.append(problem.name)
        else:
            describe_inputs(provided, workload)  # it loads
    if len(lacking) == len(plan.problems):
        raise UsageError(describe_lacking_workload(", ".join(lacking), options.workload))
    if lacking:
        typer.echo(f"{', '.join(lacking)}: no {options.workload or 'reduced'} workload, not evaluated here", err=True)


def file_task(file: Path, problem: str, language: Language | None, suite: str, options: EvaluateOptions) -> Task:
    """A task for a program without a run. `language` None: detected. Raises UsageError."""
    source = read_candidate(file)
    language = language or detect_language(source)
    found = find_named_problem(problem, suite, options.problems_dir)
    from harness.executors.tasks import Origin, make_task

    candidate = Candidate(source=source, language=language, rule="file")
    return make_task(
        found,
        candidate,
        Origin(run=FILE_RUN, model=name_candidate(file)),
        language=language,
        workload=options.workload or "full",
        baseline=options.baseline,
        dtype=options.dtype,
    )


def make_sample_task(sample: Sample, problem: Problem, options: EvaluateOptions) -> Task:
    from harness.executors.tasks import Origin, make_task

    origin = Origin(
        run=sample.key.run,
        model=sample.model,
        sample=sample.key.sample,
        turn=sample.key.turn,
        prompt=sample.prompt,
        suite=sample.suite,
    )
    return make_task(
        problem,
        sample.candidate,
        origin,
        language=sample.language,
        workload=options.workload or "full",
        baseline=options.baseline,
        notes=note_sample(sample),
        dtype=options.dtype,
    )


def _choose_wanted(
    tasks: Sequence[Task],
    options: EvaluateOptions,
    executor: Executor,
    store: ResultStore,
    report: EvaluationReport,
) -> Iterator[Task]:
    """Tasks without a stored result, reserved for the language's first device."""
    for task in tasks:
        devices = executor.devices(task.subject.language)
        placed = place_task(task, devices, options)
        if placed is None:
            report.without_workload.append(task.problem.name)
            continue
        stored = None if options.again else find_verdict(placed.subject, devices, store, options)
        if stored is not None:
            report.skipped.append(stored)
            continue
        yield placed


def order_by_duration(tasks: Iterable[Task], store: ResultStore) -> list[Task]:
    """The longest first, so that no device waits for another's last one: as long as the candidate's earlier
    evaluations, else those of its problem. What is not known comes before, in the given order."""
    known: dict[tuple[str, ...], float] = {}
    for candidate, suite, problem, duration_s in store.values(("candidate", "suite", "problem", "duration_s")):
        for key in ((candidate,), (suite, problem)):
            known[key] = max(duration_s, known.get(key, 0.0))

    def expect(task: Task) -> float:
        subject = task.subject
        of_problem = known.get((subject.suite, subject.problem), inf)
        return known.get((subject.candidate_digest,), of_problem)

    return sorted(tasks, key=expect, reverse=True)


def place_task(task: Task, devices: Sequence[DeviceFacts], options: EvaluateOptions) -> Task | None:
    """On the first device; None if the problem lacks the workload."""
    device, workload, problem = place_problem(task.problem, task.subject.language, devices, options)
    if problem is None:
        return None
    return replace(task, subject=replace(task.subject, device=device, workload=workload), problem=problem)


def place_problem(
    problem: Problem, language: Language, devices: Sequence[DeviceFacts], options: EvaluateOptions
) -> tuple[str, WorkloadName, Problem | None]:
    """The first device, and the workload there; None in the problem's place if it lacks that workload."""
    device = devices[0].name if devices else NO_DEVICE
    workload = choose_workload(problem, device, options)
    return device, workload, provide_workload(problem, workload, language)


def choose_workload(problem: Problem, device: str, options: EvaluateOptions) -> WorkloadName:
    """By default full; on the emulated device small, else reduced."""
    if options.workload is not None or device != EMULATED:
        return options.workload or "full"
    return "small" if problem.workload("small") is not None else "reduced"


def find_verdict(
    subject: Subject, devices: Sequence[DeviceFacts], store: ResultStore, options: EvaluateOptions
) -> int | None:
    """The id of a valid stored result by any of these devices, with all that the options ask for."""
    known = [(one.name, one.emulated_gpu) for one in devices] or [(NO_DEVICE, "")]
    for name, emulated_gpu in known:
        stored = store.find(replace(subject, device=name))
        if stored is not None and _still_holds(stored.evaluation, emulated_gpu, options):
            return stored.id
    return None


def _still_holds(evaluation: Evaluation, emulated_gpu: str, options: EvaluateOptions) -> bool:
    """No error, the same emulated GPU, and no time or counters missing that the options ask for."""
    facts = dict(evaluation.environment)
    if evaluation.outcome.is_error or facts.get("emulated_gpu", "") != emulated_gpu:
        return False
    if evaluation.outcome is not Outcome.CORRECT or emulated_gpu:
        return True
    if options.profile and evaluation.counters is None and evaluation.subject.device.startswith("cuda"):
        return False
    return _FIDELITIES.index(facts.get(FIDELITY, "full")) >= _FIDELITIES.index(options.fidelity)


def _run(
    executor: Executor,
    tasks: Sequence[Task],
    options: EvaluateOptions,
    provenance: Provenance,
    report: EvaluationReport,
) -> None:
    """Repeats tasks that another process had reserved but not finished."""
    from harness.executors.executor import run_tasks

    if not tasks:
        return
    began_s = monotonic()

    def read() -> list[Step]:
        return read_steps(executor, len(tasks), (len(report.evaluations), report.count(Outcome.CORRECT)), began_s)

    def find(task: Task) -> int | None:
        return find_verdict(task.subject, executor.devices(task.subject.language), provenance.store, options)

    def take(task: Task, evaluation: Evaluation) -> None:
        report.evaluations.append(provenance.record(evaluation, task))

    with Reservations(options.results_dir) as reservations, show_steps(read) as say:
        say_once = cache(say)

        @contextmanager
        def reserve(task: Task) -> Iterator[bool]:
            emulated_gpu = next((one.emulated_gpu for one in executor.devices(task.subject.language)), "")
            with reservations.hold(task.subject, emulated_gpu) as reserved:
                if not reserved:
                    say_once(_describe_other_process(len(tasks)))
                yield options.again or (reserved and find(task) is None)

        left = run_tasks(executor, tasks, take, reserve)
        while left:
            found = {id(task): find(task) for task in left}
            report.elsewhere.extend(number for number in found.values() if number is not None)
            left = [task for task in left if found[id(task)] is None]
            if left:
                sleep(POLL_S)
                left = run_tasks(executor, left, take, reserve)
    lost = executor.status().lost
    if lost:
        raise DeviceError(f"{'; '.join(lost)}. The other devices completed all {len(report.evaluations)} evaluations")


def _describe_other_process(tasks: int) -> str:
    if tasks == 1:
        return "another process evaluates this candidate: waiting for its verdict"
    return "another process evaluates some of these candidates: this one helps with the others, then waits for it"


def open_provenance(store: ResultStore, options: EvaluateOptions) -> Provenance:
    from harness.pipeline.provenance import Provenance

    return Provenance(store, generated_dir=options.generated_dir, known_solutions=options.known_solutions)


def open_executor(options: EvaluateOptions, expected_builds: int = 0) -> LocalExecutor | RayExecutor:
    """Raises UsageError and DeviceError."""
    if options.executor == "local":
        from harness.executors.local import LocalExecutor

        return LocalExecutor(options, expected_builds=expected_builds)
    from harness.executors.cluster.connection import ClusterSettings
    from harness.executors.cluster.executor import RayExecutor

    return RayExecutor(ClusterSettings(address=options.address, chip=options.chip), options)
