"""A queue and a thread for each device of one kind. A lost device is reopened; if that fails, the others take over."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from harness.domain import NOTHING_AHEAD, BuiltAhead, DeviceError, Evaluation, HarnessError
from harness.executors.executor import DeviceFacts, DeviceStatus
from harness.executors.placement import Placement
from harness.executors.tasks import Task

MOST_LOSSES = 3  # of a device, consecutive


class DeviceLost(HarnessError):
    """The device's process ended or lost the device."""


@dataclass(slots=True, kw_only=True)
class Job:
    """`losses`: reasons of device losses."""

    task: Task
    future: Future[Evaluation] = field(default_factory=Future)
    ahead: BuiltAhead = NOTHING_AHEAD
    losses: list[str] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # cancelled, or failed before
            self.future.set_exception(error)


class OpenDevice(Protocol):
    """Runs one evaluation at a time. `close` is thread-safe."""

    @property
    def facts(self) -> DeviceFacts: ...

    def evaluate(self, job: Job) -> Evaluation:
        """Raises DeviceLost."""

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class _DeviceQueue:
    name: str
    jobs: deque[Job] = field(default_factory=deque)
    device: OpenDevice | None = None
    opened: threading.Event = field(default_factory=threading.Event)  # or failed to open
    facts: DeviceFacts | None = None
    in_use: bool = True
    running: bool = False
    done: int = 0
    losses: int = 0  # since the last result


class DeviceQueues:
    """`open_device` raises HarnessError; `explain_loss` makes the evaluation after two losses."""

    def __init__(
        self,
        names: Sequence[str],
        open_device: Callable[[str], OpenDevice],
        explain_loss: Callable[[Job], Evaluation],
    ) -> None:
        self._open_device = open_device
        self._explain_loss = explain_loss
        self._placement = Placement(names)
        self._changed = threading.Condition()
        self._queues = {name: _DeviceQueue(name=name) for name in names}
        self._lost: list[str] = []
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(queue,), name=f"device {name}", daemon=True)
            for name, queue in self._queues.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._queues)

    @property
    def lost(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._lost)

    def facts(self) -> tuple[DeviceFacts, ...]:
        """Waits for all devices. Raises DeviceError if all failed."""
        for queue in self._queues.values():
            queue.opened.wait()
        with self._changed:
            found = [self._queues[name].facts for name in self._placement.names]
            if not found:
                raise DeviceError("; ".join(self._lost) or "the executor was closed")
        return tuple(facts for facts in found if facts is not None)

    def keep_one_chip(self) -> None:
        """Drops devices with another chip than the first, whose results are not comparable."""
        first, *others = self.facts()
        for other in others:
            if other.chip != first.chip:
                queue = self._queues[other.name]
                self._retire(queue)
                if queue.device is not None:
                    queue.device.close()

    def reserve(self, problem: str) -> tuple[str, bool]:
        """(device, whether it is idle) for one more evaluation. Raises DeviceError."""
        with self._changed:
            try:
                name = self._placement.choose(problem)
            except LookupError:
                raise DeviceError("; ".join(self._lost)) from None
            return name, self._placement.load(name) == 1

    def put(self, job: Job) -> None:
        """If the reserved device is lost, another gets the job."""
        with self._changed:
            self._put(job)
            self._changed.notify_all()

    def _put(self, job: Job) -> None:
        if self._closed:
            job.fail(DeviceError("the executor was closed"))
            return
        name = job.task.subject.device
        if name not in self._placement.names:
            try:
                name = self._placement.choose(job.task.problem.digest)
            except LookupError:
                job.fail(DeviceError("; ".join(self._lost)))
                return
            job.task = job.task.on_device(name)
        self._queues[name].jobs.append(job)

    def status(self) -> tuple[DeviceStatus, ...]:
        with self._changed:
            return tuple(
                DeviceStatus(
                    name=name, waiting=self._placement.load(name) - queue.running, running=int(queue.running),
                    done=queue.done,
                )
                for name, queue in self._queues.items()
                if name in self._placement.names
            )  # fmt: skip

    def close(self) -> None:
        """All jobs end with DeviceError. Thread-safe."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            left = [job for queue in self._queues.values() for job in queue.jobs]
            devices = [queue.device for queue in self._queues.values() if queue.device is not None]
            for queue in self._queues.values():
                queue.jobs.clear()
        for job in left:
            job.fail(DeviceError("the executor was closed"))
        for device in devices:
            device.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, queue: _DeviceQueue) -> None:
        while queue.in_use and self._open(queue) and (job := self._take(queue)) is not None:
            self._evaluate(queue, job)

    def _open(self, queue: _DeviceQueue) -> bool:
        if queue.device is None:
            try:
                device = self._open_device(queue.name)
            except HarnessError as error:
                self._give_up(queue, f"{queue.name} cannot be used: {error}")
                return False
            with self._changed:
                queue.device, queue.facts = device, device.facts
            queue.opened.set()
            if self._closed:
                device.close()
        return not self._closed

    def _take(self, queue: _DeviceQueue) -> Job | None:
        """None once closed."""
        with self._changed:
            while queue.in_use and not self._closed:
                if not queue.jobs:
                    self._changed.wait()
                    continue
                job = queue.jobs.popleft()
                if job.losses or job.future.set_running_or_notify_cancel():
                    queue.running = True
                    return job
                self._placement.finish(queue.name)
        return None

    def _evaluate(self, queue: _DeviceQueue, job: Job) -> None:
        assert queue.device is not None
        try:
            evaluation = queue.device.evaluate(job)
        except DeviceLost as loss:
            self._note_loss(queue, job, str(loss))
            return
        except Exception as error:  # noqa: BLE001 - one task must not end the device's thread
            self._end(queue)
            job.future.set_exception(error)
            return
        queue.losses = 0
        self._end(queue)
        job.future.set_result(evaluation)

    def _end(self, queue: _DeviceQueue) -> None:
        with self._changed:
            queue.running = False
            queue.done += 1
            self._placement.finish(queue.name)

    def _note_loss(self, queue: _DeviceQueue, job: Job, reason: str) -> None:
        """Retries the task once, since it may not be the cause."""
        assert queue.device is not None
        queue.device.close()
        with self._changed:
            queue.device = None
            if self._closed:
                job.fail(DeviceError("the executor was closed"))
                return
        queue.losses += 1
        job.losses.append(reason)
        if len(job.losses) > 1:
            self._end(queue)
            job.future.set_result(self._explain_loss(job))
        else:
            with self._changed:
                queue.running = False
                queue.jobs.appendleft(job)
        if queue.losses >= MOST_LOSSES:
            self._give_up(queue, f"{queue.name} was lost {queue.losses} times in a row: {reason}")

    def _give_up(self, queue: _DeviceQueue, why: str) -> None:
        with self._changed:
            if not self._closed:
                self._lost.append(why)
        self._retire(queue)
        queue.opened.set()

    def _retire(self, queue: _DeviceQueue) -> None:
        """Its jobs move to other devices."""
        with self._changed:
            queue.in_use = False
            self._placement.remove(queue.name)
            left = list(queue.jobs)
            queue.jobs.clear()
            for job in left:
                self._put(job)
            self._changed.notify_all()
