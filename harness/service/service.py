"""The service behind the routes: accepts requests, waits for verdicts, describes its state."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from time import monotonic, time

from harness.domain import Problem, UsageError
from harness.executors.executor import Executor
from harness.executors.tasks import Task
from harness.pipeline.provenance import KnownSolutions
from harness.service.dispatcher import Dispatcher
from harness.service.metrics import Metrics
from harness.service.preparation import find_submitted_problem, make_submitted_task
from harness.service.queue import Entry, Limits, NewTask, State, TaskQueue
from harness.service.settings import ServiceSettings
from harness.service.submission import Submission

REMEMBERED_PROBLEMS = 256


class Service:
    """Owns queue and executor. Coroutines belong to one event loop."""

    def __init__(self, settings: ServiceSettings, executor: Executor) -> None:
        self.settings = settings
        self.executor = executor
        self.metrics = Metrics()
        self.started_at = time()
        self.queue = TaskQueue.open(settings.folder)
        self._known = KnownSolutions(settings.known_solutions)
        # One thread: many would only wait for the queue, and hold up the event loop.
        self._accepting = ThreadPoolExecutor(1, "accepting")
        self._find_problem = lru_cache(REMEMBERED_PROBLEMS)(
            partial(
                find_submitted_problem, problems_dir=settings.problems_dir, trusts_references=settings.trusts_references
            )
        )
        self._limits = Limits(queued=settings.max_queued, per_client=settings.max_per_client)
        self._waiting: defaultdict[int, set[asyncio.Event]] = defaultdict(set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dispatcher = Dispatcher(
            queue=self.queue,
            executor=executor,
            prepare=self._prepare,
            metrics=self.metrics,
            on_end=self._notify,
            fidelity=settings.fidelity,
            keep_s=settings.keep_s,
        )

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.dispatcher.start()

    def stop(self) -> None:
        self._accepting.shutdown()
        self.dispatcher.stop()
        self.queue.close()

    def find_problem(self, submission: Submission) -> Problem:
        """Raises UsageError and ProblemError."""
        if submission.reference is not None and not self.settings.accepts_references:
            raise UsageError(
                "this service evaluates problems of its suites only: it was started with --no-references, or it cannot "
                "make a sandbox for references and was started without --trusted-clients"
            )
        about = Submission(
            problem=submission.problem,
            suite=submission.suite,
            reference=submission.reference,
            workload=submission.workload,
            dtype=submission.dtype,
            requires_kernel=submission.requires_kernel,
        )
        return self._find_problem(about)

    def _prepare(self, client: str, submission: Submission) -> Task:
        owner = "" if submission.reference is None or self.settings.trusts_references else client
        task = make_submitted_task(submission, self.find_problem(submission), self.executor, owner)
        return replace(task, notes=(*task.notes, *self._known.check(task)))

    async def accept(self, tasks: Sequence[NewTask]) -> list[Entry]:
        """Accept all or none. Raises UsageError, ProblemError, QueueFull and TaskConflict."""
        return await asyncio.get_running_loop().run_in_executor(self._accepting, self._accept, tasks)

    def _accept(self, tasks: Sequence[NewTask]) -> list[Entry]:
        for task in tasks:
            self.find_problem(task.submission)
        added = self.queue.add(tasks, self._limits)
        if any(is_new for _, is_new in added):
            self.dispatcher.wake()
        return [entry for entry, _ in added]

    def delete(self, client: str, task: str) -> State | None:
        """Return the deleted task's state; running tasks stay."""
        entry = self.queue.find(client, task)
        state = self.queue.delete(client, task)
        if entry is not None:
            self._notify(entry.number)
        return state

    async def wait(self, entry: Entry, timeout_s: float) -> Entry | None:
        """Return the task when it is finished or the time is over; None if it was deleted."""
        deadline = monotonic() + timeout_s
        with self._listen(entry.number) as ended:
            current = self.queue.find(entry.client, entry.task)
            while current is not None and not current.is_finished and (left := deadline - monotonic()) > 0:
                ended.clear()
                try:
                    await asyncio.wait_for(ended.wait(), left)
                except TimeoutError:
                    return self.queue.find(entry.client, entry.task)
                current = self.queue.find(entry.client, entry.task)
            return current

    @contextmanager
    def _listen(self, number: int) -> Iterator[asyncio.Event]:
        ended = asyncio.Event()
        self._waiting[number].add(ended)
        try:
            yield ended
        finally:
            self._waiting[number].discard(ended)
            if not self._waiting[number]:
                del self._waiting[number]

    def _notify(self, number: int) -> None:
        """May be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set_ended, number)

    def _set_ended(self, number: int) -> None:
        for ended in self._waiting.get(number, ()):
            ended.set()
