"""The service behind the routes: accepts requests, moves tasks and verdicts, describes its state."""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from threading import Event, Lock, Thread
from time import monotonic, time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from harness.domain import Evaluation, HarnessError, Outcome, Problem, ProblemError, UsageError
from harness.executors.executor import Executor, Task
from harness.pipeline.provenance import KnownSolutions
from harness.report.export.json_records import dump_json, evaluation_record
from harness.service.preparation import find_submitted_problem, make_submitted_task
from harness.service.queue import Entry, Limits, NewTask, State, Submission, TaskQueue
from harness.service.settings import ServiceSettings
from harness.store.results import StoredEvaluation

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
        self.dispatcher = Dispatcher(self)

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
        about = submission.model_dump(exclude={"candidate", "completion", "language", "baseline", "fidelity"})
        return self._find_problem(Submission(**about))  # remembered for all programs

    def prepare(self, client: str, submission: Submission) -> Task:
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
            self.notify(entry.number)
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

    def notify(self, number: int) -> None:
        """May be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set_ended, number)

    def _set_ended(self, number: int) -> None:
        for ended in self._waiting.get(number, ()):
            ended.set()


POLL_S = 1.0
CLEAN_EVERY_S = 600.0
LOG = logging.getLogger("harness.service")


class Dispatcher:
    """Moves tasks from queue to executor, and verdicts back. Repeats a write that fails, as when the disk is full."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._queue, self._executor, self._metrics = service.queue, service.executor, service.metrics
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
            self._metrics.waited(entry)
            with self._lock:
                self._in_flight += 1
            future: Future[Evaluation] = Future()
            try:
                future = self._executor.submit(self._service.prepare(entry.client, submission))
            except Exception as error:  # noqa: BLE001 - this task fails; the others go on
                future.set_exception(error)
            future.add_done_callback(partial(self._end, entry))
        if monotonic() > self._clean_at_s:
            self._queue.delete_finished(time() - self._service.settings.keep_s)
            self._clean_at_s = monotonic() + CLEAN_EVERY_S
        return bool(taken)

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
            self._service.notify(entry.number)

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
        record = dump_json(evaluation_record(stored) | {"fidelity": self._service.settings.fidelity})
        if evaluation.outcome.counts_against_model:
            self._queue.finish(entry.number, record)
        else:
            message = evaluation.message or evaluation.outcome.value
            is_lasting = evaluation.outcome is Outcome.PROBLEM_ERROR
            self._queue.fail(entry.number, message, record, is_lasting=is_lasting)
        self._metrics.evaluated(evaluation)
        extra = {"task": entry.task, "client": entry.client, "outcome": evaluation.outcome.value}
        LOG.info("evaluated", extra=extra | {"seconds": round(evaluation.duration_s, 3)})


LONG_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SHORT_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 60.0)
METHODS = ("GET", "POST", "DELETE")


class Metrics:
    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("harness_requests", "HTTP requests.", ("method", "route", "status"), registry=registry)
        self._request_s = Histogram(
            "harness_request_seconds",
            "Time to answer, waiting included.",
            ("route",),
            buckets=SHORT_S,
            registry=registry,
        )
        self._tasks = Gauge("harness_tasks", "Tasks in the queue's folder.", ("state",), registry=registry)
        self._devices = Gauge("harness_devices", "Devices that evaluate.", registry=registry)
        self._wait_s = Histogram(
            "harness_queue_wait_seconds", "From acceptance to start.", buckets=LONG_S, registry=registry
        )
        self._build_s = Histogram(
            "harness_build_seconds", "Builds, without cached ones.", buckets=LONG_S, registry=registry
        )
        self._evaluation_s = Histogram("harness_evaluation_seconds", "Evaluations.", buckets=LONG_S, registry=registry)
        self._verdicts = Counter("harness_verdicts", "Verdicts.", ("outcome", "language", "device"), registry=registry)
        self._failures = Counter(
            "harness_failures", "Tasks without a verdict: faults of harness or machine.", registry=registry
        )

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        named = method if method in METHODS else "other"  # clients can invent them
        self._requests.labels(named, route, str(status)).inc()
        self._request_s.labels(route).observe(seconds)

    def waited(self, entry: Entry) -> None:
        self._wait_s.observe(max(time() - entry.accepted_at, 0.0))

    def failed(self) -> None:
        self._failures.inc()

    def evaluated(self, evaluation: Evaluation) -> None:
        self._evaluation_s.observe(evaluation.duration_s)
        if evaluation.build is not None and not evaluation.build.cached:
            self._build_s.observe(evaluation.build.duration_s)
        if evaluation.outcome.counts_against_model:
            subject = evaluation.subject
            self._verdicts.labels(evaluation.outcome.value, subject.language, subject.device).inc()
        else:
            self._failures.inc()

    def render(self, counts: dict[State, int], devices: int) -> bytes:
        for state, count in counts.items():
            self._tasks.labels(state).set(count)
        self._devices.set(devices)
        return generate_latest(self._registry)
