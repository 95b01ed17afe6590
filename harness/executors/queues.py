"""A queue and a thread for each device of one kind. A device that is lost is opened again; one that cannot be is given
up, and the others take its evaluations."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from harness.domain import DeviceError, Evaluation, HarnessError
from harness.evaluation.builds import NOTHING_AHEAD, BuiltAhead
from harness.executors.executor import DeviceFacts, DeviceStatus
from harness.executors.placement import Placement
from harness.executors.tasks import Task

MOST_LOSSES = 3  # of a device, one after the other


class DeviceLost(HarnessError):
    """The process that evaluates on a device has ended, or can no longer use it."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One task on its way to a verdict. `losses`: why devices were lost while they evaluated it."""

    task: Task
    future: Future[Evaluation] = field(default_factory=Future)
    ahead: BuiltAhead = NOTHING_AHEAD
    losses: list[str] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # it was cancelled, or has failed before
            self.future.set_exception(error)


class OpenDevice(Protocol):
    """A device that is ready to evaluate. One evaluation at a time; `close` may be called from any thread."""

    @property
    def facts(self) -> DeviceFacts: ...

    def evaluate(self, job: Job) -> Evaluation:
        """Raises DeviceLost if the device is lost meanwhile."""

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Lane:
    name: str
    jobs: deque[Job] = field(default_factory=deque)
    device: OpenDevice | None = None
    opened: threading.Event = field(default_factory=threading.Event)  # it was tried at least once
    facts: DeviceFacts | None = None
    in_use: bool = True
    running: bool = False
    done: int = 0
    losses: int = 0  # since the last verdict


class DeviceQueues:
    """`open_device` opens a device by its name, and raises HarnessError where that cannot be; `explain_loss` makes the
    verdict on a task that two devices were lost with."""

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
        self._lanes = {name: _Lane(name=name) for name in names}
        self._lost: list[str] = []
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(lane,), name=f"device {name}", daemon=True)
            for name, lane in self._lanes.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._lanes)

    @property
    def lost(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._lost)

    def facts(self) -> tuple[DeviceFacts, ...]:
        """Of the devices in use, once all were opened. Raises DeviceError if none could be."""
        for lane in self._lanes.values():
            lane.opened.wait()
        with self._changed:
            found = [self._lanes[name].facts for name in self._placement.names]
            if not found:
                raise DeviceError("; ".join(self._lost) or "the executor was closed")
        return tuple(facts for facts in found if facts is not None)

    def keep_one_chip(self) -> None:
        """Gives up the devices that have another chip than the first: rows of two chips are not comparable."""
        first, *others = self.facts()
        for other in others:
            if other.chip != first.chip:
                lane = self._lanes[other.name]
                self._retire(lane)
                if lane.device is not None:
                    lane.device.close()

    def reserve(self, problem: str) -> tuple[str, bool]:
        """The device for one more evaluation of a problem, and whether it has nothing else to do. Raises DeviceError
        where all are lost."""
        with self._changed:
            try:
                name = self._placement.choose(problem)
            except LookupError:
                raise DeviceError("; ".join(self._lost)) from None
            return name, self._placement.load(name) == 1

    def put(self, job: Job) -> None:
        """Queues a job for the device that it was reserved for, or another where that is lost."""
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
        self._lanes[name].jobs.append(job)

    def status(self) -> tuple[DeviceStatus, ...]:
        with self._changed:
            return tuple(
                DeviceStatus(
                    name=name, waiting=self._placement.load(name) - lane.running, running=int(lane.running),
                    done=lane.done,
                )
                for name, lane in self._lanes.items()
                if name in self._placement.names
            )  # fmt: skip

    def close(self) -> None:
        """Ends every device, from any thread; jobs that wait or run end with DeviceError."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            left = [job for lane in self._lanes.values() for job in lane.jobs]
            devices = [lane.device for lane in self._lanes.values() if lane.device is not None]
            for lane in self._lanes.values():
                lane.jobs.clear()
        for job in left:
            job.fail(DeviceError("the executor was closed"))
        for device in devices:
            device.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, lane: _Lane) -> None:
        while lane.in_use and self._open(lane) and (job := self._take(lane)) is not None:
            self._evaluate(lane, job)

    def _open(self, lane: _Lane) -> bool:
        """Whether the device is open, opened now if need be."""
        if lane.device is None:
            try:
                device = self._open_device(lane.name)
            except HarnessError as error:
                self._give_up(lane, f"{lane.name} cannot be used: {error}")
                return False
            with self._changed:
                lane.device, lane.facts = device, device.facts
            lane.opened.set()
            if self._closed:
                device.close()
        return not self._closed

    def _take(self, lane: _Lane) -> Job | None:
        """The next job; None once the executor is closed."""
        with self._changed:
            while lane.in_use and not self._closed:
                if not lane.jobs:
                    self._changed.wait()
                    continue
                job = lane.jobs.popleft()
                if job.losses or job.future.set_running_or_notify_cancel():
                    lane.running = True
                    return job
                self._placement.finish(lane.name)
        return None

    def _evaluate(self, lane: _Lane, job: Job) -> None:
        assert lane.device is not None
        try:
            evaluation = lane.device.evaluate(job)
        except DeviceLost as loss:
            self._note_loss(lane, job, str(loss))
            return
        except Exception as error:  # noqa: BLE001 - one task must not end the thread that serves the others
            self._end(lane)
            job.future.set_exception(error)
            return
        lane.losses = 0
        self._end(lane)
        job.future.set_result(evaluation)

    def _end(self, lane: _Lane) -> None:
        with self._changed:
            lane.running = False
            lane.done += 1
            self._placement.finish(lane.name)

    def _note_loss(self, lane: _Lane, job: Job, reason: str) -> None:
        """The task is evaluated once more, on the device opened again, since it may not be the cause."""
        assert lane.device is not None
        lane.device.close()
        with self._changed:
            lane.device = None
            if self._closed:
                job.fail(DeviceError("the executor was closed"))
                return
        lane.losses += 1
        job.losses.append(reason)
        if len(job.losses) > 1:
            self._end(lane)
            job.future.set_result(self._explain_loss(job))
        else:
            with self._changed:
                lane.running = False
                lane.jobs.appendleft(job)
        if lane.losses >= MOST_LOSSES:
            self._give_up(lane, f"{lane.name} was lost {lane.losses} times, one after the other: {reason}")

    def _give_up(self, lane: _Lane, why: str) -> None:
        with self._changed:
            if not self._closed:
                self._lost.append(why)
        self._retire(lane)
        lane.opened.set()

    def _retire(self, lane: _Lane) -> None:
        """Uses a device no more; its jobs go to the others."""
        with self._changed:
            lane.in_use = False
            self._placement.remove(lane.name)
            left = list(lane.jobs)
            lane.jobs.clear()
            for job in left:
                self._put(job)
            self._changed.notify_all()
