"""Evaluates one task at a time for many concurrent samples."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

from harness.domain import Evaluation, Language, Problem, UsageError
from harness.pipeline.evaluate import POLL_S, find_verdict, place_problem, place_task
from harness.pipeline.options import EvaluateOptions
from harness.problems.workloads import describe_lacking_workload
from harness.store.reservations import Reservations
from harness.store.results import ResultFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.executors.executor import DeviceFacts, Executor
    from harness.executors.tasks import Task
    from harness.pipeline.provenance import Provenance
    from harness.pipeline.screening import Screening


class SingleEvaluations:
    """Each task is evaluated once across all processes."""

    def __init__(
        self,
        options: EvaluateOptions,
        executor: Executor,
        provenance: Provenance,
        reservations: Reservations,
        screening: Screening | None = None,
    ) -> None:
        self.options = options
        self._executor = executor
        self._provenance = provenance
        self._store = provenance.store
        self._reservations = reservations
        self._screening = screening
        self._slots: asyncio.Semaphore | None = None

    def find_obstacle(self, problem: Problem, language: Language) -> str:
        """Why candidates of this problem cannot be evaluated, or ""."""
        _, _, placed = place_problem(problem, language, self._executor.devices(language), self.options)
        return "" if placed else describe_lacking_workload(problem.name, self.options.workload)

    async def evaluate(
        self,
        task: Task,
        *,
        again: bool = False,
        show_wait: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[Evaluation, int]:
        """(evaluation, how often this subject was evaluated). A stored verdict is used unless `again`. `show_wait` is
        entered while another process evaluates this task."""
        screening = None if again else self._screening
        again = again or self.options.again
        devices = self._executor.devices(task.subject.language)
        placed = place_task(task, devices, self.options)
        if placed is None:
            raise UsageError(describe_lacking_workload(task.problem.name, self.options.workload))
        emulated_gpu = next((one.emulated_gpu for one in devices), "")
        with ExitStack() as waiting:
            while True:
                number = None if again else self._find(placed, devices)
                stored = None if number is None else self._store.get(number)
                if stored is not None:
                    return stored.evaluation, self._count(stored.evaluation)
                with self._reservations.hold(placed.subject, emulated_gpu) as reserved:
                    if reserved and (again or self._find(placed, devices) is None):
                        waiting.close()
                        evaluation = await self._run(placed, screening)
                        return evaluation, self._count(evaluation)
                waiting.close()
                waiting.enter_context(show_wait())
                await asyncio.sleep(POLL_S)

    def _find(self, placed: Task, devices: Sequence[DeviceFacts]) -> int | None:
        return find_verdict(placed.subject, devices, self._store, self.options)

    async def _run(self, task: Task, screening: Screening | None) -> Evaluation:
        if self._slots is None:
            self._slots = asyncio.Semaphore(self._executor.capacity)
        failure = None if screening is None else await screening.find_failure(task)
        if failure is not None:
            return self._provenance.record(failure, task)[1]
        async with self._slots:
            evaluation = await asyncio.wrap_future(self._executor.submit(task))
        return self._provenance.record(evaluation, task)[1]

    def _count(self, evaluation: Evaluation) -> int:
        subject = evaluation.subject
        where = ResultFilter(run=subject.run, problem=subject.problem, sample=subject.sample, turn=subject.turn)
        same = [one.evaluation for one in self._store.load_all(where, history=True)]
        return sum(one.subject == subject and not one.outcome.is_error for one in same)
