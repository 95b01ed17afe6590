"""Moves tasks from the queue to the executor, and verdicts back."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic, time

from harness.domain import Evaluation, Fidelity, HarnessError, Outcome, ProblemError, UsageError
from harness.executors.executor import Executor
from harness.executors.tasks import Task
from harness.report.export.json_records import dump_json, evaluation_record
from harness.service.metrics import Metrics
from harness.service.queue import Entry, TaskQueue
from harness.service.submission import Submission
from harness.store.results import StoredEvaluation

POLL_S = 1.0
CLEAN_EVERY_S = 600.0
LOG = logging.getLogger("harness.service")

Prepare = Callable[[str, Submission], Task]  # from the client and its request


class Dispatcher:
    """`on_end` is called with each finished task's number. If the queue cannot be written (disk full), the write is
    repeated.
    """

    def __init__(
        self,
        *,
        queue: TaskQueue,
        executor: Executor,
        prepare: Prepare,
        metrics: Metrics,
        on_end: Callable[[int], None],
        fidelity: Fidelity,
        keep_s: float,
    ) -> None:
        self._queue = queue
        self._executor = executor
        self._prepare = prepare
        self._metrics = metrics
        self._on_end = on_end
        self._fidelity = fidelity
        self._keep_s = keep_s
        self._wake = Event()
        self._stopping = False
        self._lock = Lock()
        self._in_flight = 0
        self._clean_at_s = 0.0
        self._unstored: deque[tuple[Entry, Future[Evaluation]]] = deque()
        self._thread = Thread(target=self._serve, name="dispatcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Close the executor. Running tasks keep this state in the queue, so the next start repeats them."""
        self._stopping = True
        self._wake.set()
        self._executor.close()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _serve(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                is_busy = self._dispatch()
            except Exception:
                LOG.exception("the queue was not read")
                is_busy = False
            if not is_busy:
                self._wake.wait(POLL_S)

    def _dispatch(self) -> bool:
        for _ in range(len(self._unstored)):
            self._store(*self._unstored.popleft())
        free = self._executor.capacity - self._in_flight
        taken = self._queue.take(free) if free > 0 else []
        for entry, submission in taken:
            self._submit(entry, submission)
        if monotonic() > self._clean_at_s:
            self._queue.delete_finished(time() - self._keep_s)
            self._clean_at_s = monotonic() + CLEAN_EVERY_S
        return bool(taken)

    def _submit(self, entry: Entry, submission: Submission) -> None:
        self._metrics.waited(entry)
        with self._lock:
            self._in_flight += 1
        future: Future[Evaluation] = Future()
        try:
            future = self._executor.submit(self._prepare(entry.client, submission))
        except Exception as error:  # noqa: BLE001 - this task fails; the others go on
            future.set_exception(error)
        future.add_done_callback(partial(self._end, entry))

    def _end(self, entry: Entry, future: Future[Evaluation]) -> None:
        with self._lock:
            self._in_flight -= 1
        self._store(entry, future)
        self._wake.set()

    def _store(self, entry: Entry, future: Future[Evaluation]) -> None:
        if self._stopping:
            return
        try:
            self._record(entry, future)
        except Exception:
            LOG.exception("a verdict was not stored", extra={"task": entry.task, "client": entry.client})
            self._unstored.append((entry, future))
        else:
            self._on_end(entry.number)

    def _record(self, entry: Entry, future: Future[Evaluation]) -> None:
        error = future.exception()
        if error is not None:
            message = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
            self._queue.fail(entry.number, message, is_lasting=isinstance(error, UsageError | ProblemError))
            self._metrics.failed()
            LOG.error("failed", extra={"task": entry.task, "client": entry.client, "error": message})
            return
        evaluation = future.result()
        stored = StoredEvaluation(id=entry.number, evaluation=evaluation)
        record = dump_json(evaluation_record(stored) | {"fidelity": self._fidelity})
        if evaluation.outcome.counts_against_model:
            self._queue.finish(entry.number, record)
        else:
            message = evaluation.message or evaluation.outcome.value
            is_lasting = evaluation.outcome is Outcome.PROBLEM_ERROR
            self._queue.fail(entry.number, message, record, is_lasting=is_lasting)
        self._metrics.evaluated(evaluation)
        extra = {"task": entry.task, "client": entry.client, "outcome": evaluation.outcome.value}
        LOG.info("evaluated", extra=extra | {"seconds": round(evaluation.duration_s, 3)})
