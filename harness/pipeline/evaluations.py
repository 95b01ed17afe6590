"""Evaluates tasks for all commands: finds the stored verdict, or reserves, screens, submits and records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf
from typing import Literal, get_args

from harness.analysis.leaderboard import LeaderboardRow
from harness.domain import (
    EMULATED,
    FIDELITY,
    NO_DEVICE,
    DeviceError,
    Evaluation,
    Fidelity,
    Finding,
    Language,
    Outcome,
    Subject,
    UsageError,
)
from harness.executors.executor import DeviceFacts, Executor, Submissions, Task, finish_all
from harness.languages import CPU_LANGUAGE, LANGUAGES, find_devices
from harness.pipeline.evaluate import choose_workload, open_executor
from harness.pipeline.options import EVERY_TASK, EvaluateOptions, Selection
from harness.pipeline.provenance import Provenance
from harness.problems.workloads import describe_lacking_workload, provide_workload
from harness.report.export.table_files import write_csvs
from harness.report.terminal.search_progress import Step, read_steps
from harness.search.strategy import Screen
from harness.store.results import Reservations, ResultFilter, ResultStore, StoredEvaluation

LOG = logging.getLogger(__name__)
POLL_S = 0.2  # for the end of another process
_FIDELITIES = get_args(Fidelity)
_SAME_CANDIDATE = ("run", "suite", "problem", "sample", "turn", "model", "workload", "dtype")

ShowSteps = Callable[[Callable[[], Sequence[Step]]], AbstractContextManager[object]]
ShowWait = Callable[[], AbstractContextManager[None]]


@dataclass(slots=True, kw_only=True)
class EvaluationReport:
    """`evaluations` are new; `skipped` were stored before; another process made those `elsewhere`."""

    evaluations: list[StoredEvaluation] = field(default_factory=list)
    skipped: list[StoredEvaluation] = field(default_factory=list)
    elsewhere: list[StoredEvaluation] = field(default_factory=list)
    without_workload: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    def count(self, outcome: Outcome) -> int:
        return sum(one.evaluation.outcome is outcome for one in self.evaluations)

    @property
    def all(self) -> list[StoredEvaluation]:
        return sorted([*self.evaluations, *self.skipped, *self.elsewhere], key=lambda one: one.id)


@dataclass(slots=True, kw_only=True)
class Results:
    store: ResultStore
    reservations: Reservations
    provenance: Provenance
    ranking: Sequence[LeaderboardRow] = ()


@contextmanager
def open_results(options: EvaluateOptions) -> Iterator[Results]:
    folder, generated_dir = options.results_dir, options.generated_dir
    with ResultStore.open(folder) as store, Reservations(folder) as reservations:
        provenance = Provenance(store, generated_dir=generated_dir, known_solutions=options.known_solutions)
        results = Results(store=store, reservations=reservations, provenance=provenance)
        try:
            yield results
        finally:
            results.ranking = write_csvs(store, folder, generated_dir=generated_dir)


@contextmanager
def open_evaluations(options: EvaluateOptions, tasks: Sequence[Task]) -> Iterator[Evaluations]:
    """Use a new executor. Raises HarnessError and KeyboardInterrupt; recorded results stay."""
    with open_results(options) as results, open_executor(options, tasks) as executor:
        yield Evaluations(options, executor, results)


def evaluate_tasks(
    tasks: Sequence[Task], options: EvaluateOptions, show: ShowSteps = nullcontext, selection: Selection = EVERY_TASK
) -> EvaluationReport:
    """Raises as `open_evaluations`."""
    with open_evaluations(options, tasks) as evaluations:
        evaluations.evaluate_all(tasks, show, selection)
    return evaluations.report


class Evaluations:
    """Evaluates each task once across all processes. For `same_inputs` see `Submissions`."""

    def __init__(
        self,
        options: EvaluateOptions,
        executor: Executor,
        results: Results,
        *,
        screening: Screening | None = None,
        same_inputs: bool = True,
    ) -> None:
        self.options, self.executor, self.report = options, executor, EvaluationReport()
        self._results, self._screening, self._same_inputs = results, screening, same_inputs
        self._starting = asyncio.Lock()
        self._submissions: Submissions | None = None  # once the devices are known

    def evaluate_all(
        self, tasks: Iterable[Task], show: ShowSteps = nullcontext, selection: Selection = EVERY_TASK
    ) -> None:
        """Start with the longest, unless the first failure ends it. Raises the first error, or DeviceError, last."""
        wanted = self._choose_failed(tasks) if selection.last_failed else list(tasks)
        if not selection.fails_fast:
            wanted = order_by_duration(self._choose_wanted(wanted), self._results.store)
        if not wanted:
            return
        extended = [task for task in wanted if task.has_extensions]
        note_once, report = cache(partial(_note_other_process, len(wanted))), self.report

        def read() -> list[Step]:
            done = len(report.evaluations), report.count(Outcome.CORRECT)
            finished = {one.evaluation.subject.candidate_digest for one in report.evaluations}
            to_build = [task for task in extended if task.subject.candidate_digest not in finished]
            return read_steps(self.executor, len(wanted), done, builds=(len(extended), len(to_build)))

        def show_wait() -> AbstractContextManager[None]:
            return nullcontext(note_once())

        with show(read):
            if selection.fails_fast:
                asyncio.run(self._evaluate_in_order(wanted, show_wait))
            else:
                asyncio.run(finish_all(self._evaluate_new(task, self.options.again, show_wait) for task in wanted))
        self.require_devices()

    async def _evaluate_in_order(self, tasks: Iterable[Task], show_wait: ShowWait) -> None:
        """End after the first new or stored verdict that is not correct."""
        for task in tasks:
            for placed in self._choose_wanted([task]):
                await self._evaluate_new(placed, self.options.again, show_wait)
            if any(one.evaluation.outcome is not Outcome.CORRECT for one in self.report.all):
                return

    def _choose_wanted(self, tasks: Iterable[Task]) -> Iterator[Task]:
        for task in tasks:
            placed = self._place(task)
            if placed is None:
                self.report.without_workload.append(task.problem.name)
            elif self.options.again or self._find_stored(placed) is None:
                yield placed

    def _choose_failed(self, tasks: Iterable[Task]) -> list[Task]:
        """Choose candidates whose latest verdict, of this or an earlier version of a file, is not correct."""
        latest: dict[tuple[object, ...], str] = {}
        for *candidate, device, outcome in self._results.store.values((*_SAME_CANDIDATE, "device", "outcome")):
            latest[*candidate, device.partition(":")[0]] = outcome

        def find(task: Task) -> str:
            subject = (self._place(task) or task).subject
            candidate = (getattr(subject, name) for name in _SAME_CANDIDATE)
            return latest.get((*candidate, subject.device.partition(":")[0]), Outcome.CORRECT)

        return [task for task in tasks if find(task) != Outcome.CORRECT]

    async def evaluate(self, task: Task, *, again: bool = False, show_wait: ShowWait = nullcontext) -> StoredEvaluation:
        """Use a stored verdict unless `again`, which skips screening, too. `show_wait`: for another process."""
        async with self._starting:  # keeps the order of tasks that wait for the start of devices
            await asyncio.to_thread(self.executor.devices, task.subject.language)
        placed = self._require_place(task)
        stored = None if again or self.options.again else self._find_stored(placed)
        return stored or await self._evaluate_new(placed, again or self.options.again, show_wait, screens=not again)

    async def try_out(self, task: Task) -> Evaluation:
        """Evaluate without a record. Raises UsageError for a lacking workload."""
        return await asyncio.wrap_future(self.executor.submit(self._require_place(task)))

    def find(self, task: Task) -> StoredEvaluation | None:
        """Raises UsageError for a lacking workload."""
        return self._find(self._require_place(task))

    def _require_place(self, task: Task) -> Task:
        placed = self._place(task)
        if placed is None:
            raise UsageError(describe_lacking_workload(task.problem.name, self.options.workload))
        return placed

    def count(self, evaluation: Evaluation) -> int:
        where = ResultFilter.of_sample(evaluation.subject.key)
        same = [one.evaluation for one in self._results.store.load_all(where, history=True)]
        return sum(one.subject == evaluation.subject and not one.outcome.is_error for one in same)

    def require_devices(self) -> None:
        """Raises DeviceError if one was lost."""
        if lost := self.executor.status().lost:
            count = len(self.report.evaluations)
            raise DeviceError(f"{'; '.join(lost)}. The other devices completed all {count} evaluations")

    def _place(self, task: Task) -> Task | None:
        if task.candidate is not None:
            self.report.sources[task.candidate.digest] = task.candidate.source
        return place_task(task, self.executor.devices(task.subject.language), self.options)

    def _find_stored(self, placed: Task) -> StoredEvaluation | None:
        stored = self._find(placed)
        self.report.skipped += [stored] if stored else []
        return stored

    def _find(self, placed: Task) -> StoredEvaluation | None:
        devices = self.executor.devices(placed.subject.language)
        return find_verdict(placed.subject, devices, self._results.store, self.options)

    async def _evaluate_new(
        self, placed: Task, again: bool, show_wait: ShowWait, *, screens: bool = True
    ) -> StoredEvaluation:
        """Reserve only as many tasks as keep the executor busy, and leave the others to other processes."""
        screening = self._screening if screens else None
        if self._submissions is None:
            more = 0 if self._screening is None else self._screening.executor.capacity
            self._submissions = Submissions(self.executor, more=more, same_inputs=self._same_inputs)
        emulated_gpu = next((one.emulated_gpu for one in self.executor.devices(placed.subject.language)), "")
        while True:
            async with self._submissions.wait_for_slot(placed):
                with self._results.reservations.hold(placed.subject, emulated_gpu) as reserved:
                    if not again and (stored := self._find(placed)) is not None:
                        self.report.elsewhere.append(stored)
                        return stored
                    if reserved or again:
                        failure = None if screening is None else await screening.find_failure(placed)
                        evaluation = failure or await self._submissions.submit(placed)
                        self.report.evaluations.append(self._results.provenance.record(evaluation, placed))
                        return self.report.evaluations[-1]
            with show_wait():
                await asyncio.sleep(POLL_S)


def _note_other_process(tasks: int) -> None:
    if tasks == 1:
        LOG.warning("another process evaluates this candidate: waiting for its verdict")
    else:
        LOG.warning(
            "another process evaluates some of these candidates: this one helps with the others, then waits for it"
        )


def order_by_duration(tasks: Iterable[Task], store: ResultStore) -> list[Task]:
    """Sort the longest first, so that no device waits for another's last one: by the candidate's earlier evaluations,
    else those of its problem; unknown durations come first. Those of one problem follow each other.
    """
    tasks = list(tasks)
    places = {task.problem.digest: place for place, task in reversed(list(enumerate(tasks)))}
    known: dict[tuple[str, ...], float] = {}
    for candidate, suite, problem, duration_s in store.values(("candidate", "suite", "problem", "duration_s")):
        for key in ((candidate,), (suite, problem)):
            known[key] = max(duration_s, known.get(key, 0.0))

    def expect(task: Task) -> float:
        subject = task.subject
        of_problem = known.get((subject.suite, subject.problem), inf)
        return known.get((subject.candidate_digest,), of_problem)

    return sorted(tasks, key=lambda task: (-expect(task), places[task.problem.digest]))


def place_task(task: Task, devices: Sequence[DeviceFacts], options: EvaluateOptions) -> Task | None:
    """Use the first device; return None if the problem lacks the workload."""
    device = devices[0].name if devices else NO_DEVICE
    workload = choose_workload(task.problem, device, options)
    problem = provide_workload(task.problem, workload, task.subject.language)
    if problem is None:
        return None
    return replace(task, subject=replace(task.subject, device=device, workload=workload), problem=problem)


def find_verdict(
    subject: Subject, devices: Sequence[DeviceFacts], store: ResultStore, options: EvaluateOptions
) -> StoredEvaluation | None:
    """Return a valid stored result by any of these devices, with everything that the options request."""
    known = [(one.name, one.emulated_gpu) for one in devices] or [(NO_DEVICE, "")]
    for name, emulated_gpu in known:
        stored = store.find(replace(subject, device=name))
        if stored is not None and _still_holds(stored.evaluation, emulated_gpu, options):
            return stored
    return None


def _still_holds(evaluation: Evaluation, emulated_gpu: str, options: EvaluateOptions) -> bool:
    """Errors, another emulated GPU, or missing times, baselines or counters make a verdict invalid."""
    facts = evaluation.facts
    if evaluation.outcome.is_error or facts.get("emulated_gpu", "") != emulated_gpu:
        return False
    is_checked = any(one.check == "address_sanitizer" for one in evaluation.findings)
    if options.asan and evaluation.subject.language == CPU_LANGUAGE and not is_checked:
        return False
    if evaluation.outcome is not Outcome.CORRECT or emulated_gpu:
        return True
    wanted = {one.name for one in options.baselines[1:]} if options.fidelity != "correctness" else set()
    if not wanted <= {one.name for one in evaluation.further}:
        return False
    if options.profile and evaluation.counters is None and evaluation.subject.device.startswith("cuda"):
        return False
    return _FIDELITIES.index(facts.get(FIDELITY, "full")) >= _FIDELITIES.index(options.fidelity)


OF_THE_EMULATION = (Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY)  # a GPU is faster, and has other memory


class Screening:
    """`small` checks correctness at small or reduced sizes on the same devices; `emulated` on the emulated device."""

    def __init__(self, screen: Screen, options: EvaluateOptions, executor: Executor) -> None:
        self._screen, self._options, self.executor = screen, options, executor

    async def find_failure(self, task: Task) -> Evaluation | None:
        """Return the failure as verdict of `task`; None if the candidate is correct or could not be evaluated here."""
        placed = self._place(task)
        if placed is None:
            return None
        evaluation = await asyncio.wrap_future(self.executor.submit(placed))
        outcome = evaluation.outcome
        if outcome is Outcome.CORRECT or not outcome.counts_against_model:
            return None
        if self._screen == EMULATED and outcome in OF_THE_EMULATION:
            return None
        sizes = f"{placed.subject.workload} sizes on {evaluation.subject.device}"
        note = Finding(check="screen", severity="note", message=f"evaluated at {sizes} only (--screen {self._screen})")
        facts = tuple(fact for fact in evaluation.environment if fact[0] != "emulated_gpu")  # not of the task's device
        return replace(evaluation, subject=task.subject, environment=facts, findings=(*evaluation.findings, note))

    def _place(self, task: Task) -> Task | None:
        devices = self.executor.devices(task.subject.language)
        names: tuple[Literal["small", "reduced"], ...] = ("small", "reduced")
        tasks = (place_task(task, devices, replace(self._options, workload=name)) for name in names)
        return next((replace(one, rival=None) for one in tasks if one is not None), None)


@contextmanager
def open_screening(screen: Screen | None, options: EvaluateOptions, language: Language) -> Iterator[Screening | None]:
    """Raises UsageError if the screening device does not fit, or is the evaluating one."""
    from harness.executors.local import LocalExecutor

    if screen is None:
        yield None
        return
    rules = LANGUAGES[language]
    if screen == EMULATED and (rules.compiles_only or not rules.uses_gpu):
        raise UsageError(f"--screen emulated: language {language} is not emulated")
    if screen == EMULATED and EMULATED in find_devices(options.device, language):
        raise UsageError("--screen emulated: the emulated device is where the candidates are evaluated anyway")
    device = EMULATED if screen == EMULATED else options.device
    options = replace(options, device=device, fidelity="correctness", profile=False)
    with LocalExecutor(options) as executor:
        yield Screening(screen, options, executor)
