"""Runs the devices of one kind, one thread each. A lost device is reopened; if that fails, the others take over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from harness.domain import NOTHING_AHEAD, BuiltAhead, DeviceError, Evaluation, HarnessError, Outcome, ReferenceStopped
from harness.executors.executor import DeviceFacts, DeviceStatus
from harness.executors.placement import JobQueue, share_out
from harness.executors.tasks import Task

MOST_LOSSES = 3  # of a device, consecutive


class DeviceLost(HarnessError):
    """The device's process ended or lost the device. With `for_good` the device must not be used again. With
    `is_reported` the process reported the loss.
    """

    def __init__(self, reason: str, *, for_good: bool = False, is_reported: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good
        self.is_reported = is_reported


@dataclass(slots=True, kw_only=True)
class Job:
    """`losses` are reasons of device losses that a program may have caused. `upcoming` are waiting tasks of the same
    client. For `is_prepared` see `PlacedJob`.
    """

    task: Task
    number: int = field(default_factory=count().__next__)
    future: Future[Evaluation] = field(default_factory=Future)
    ahead: BuiltAhead = NOTHING_AHEAD
    is_prepared: bool = True
    losses: list[str] = field(default_factory=list)
    upcoming: tuple[Task, ...] = ()

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # cancelled, or failed before
            self.future.set_exception(error)


class OpenDevice(Protocol):
    """Runs one evaluation at a time. `close` is thread-safe."""

    @property
    def facts(self) -> DeviceFacts: ...

    def evaluate(self, job: Job) -> Evaluation:
        """Raises DeviceLost or ReferenceStopped; both require reopening the device."""

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Slot:
    name: str
    device: OpenDevice | None = None
    opened: threading.Event = field(default_factory=threading.Event)  # or failed to open
    facts: DeviceFacts | None = None
    in_use: bool = True
    running: bool = False
    done: int = 0
    losses: int = 0  # since the last result


class DevicePool:
    """`open_device` raises HarnessError; `explain_loss` makes the evaluation after two losses."""

    def __init__(
        self,
        names: Sequence[str],
        open_device: Callable[[str], OpenDevice],
        explain_loss: Callable[[Job], Evaluation],
    ) -> None:
        self._open_device = open_device
        self._explain_loss = explain_loss
        self._waiting = JobQueue[Job]()
        self._announced = 0
        self._changed = threading.Condition()
        self._slots = {name: _Slot(name=name) for name in names}
        self._lost: list[str] = []
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), name=f"device {name}", daemon=True)
            for name, slot in self._slots.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._slots)

    @property
    def lost(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._lost)

    def facts(self) -> tuple[DeviceFacts, ...]:
        """Waits for all devices. Raises DeviceError if all failed."""
        for slot in self._slots.values():
            slot.opened.wait()
        with self._changed:
            found = [slot.facts for slot in self._list_used()]
            if not found:
                raise DeviceError("; ".join(self._lost) or "the executor was closed")
        return tuple(facts for facts in found if facts is not None)

    def keep_one_chip(self) -> None:
        """Drop devices with another chip than the first: their results are not comparable."""
        first, *others = self.facts()
        for other in others:
            if other.chip != first.chip:
                slot = self._slots[other.name]
                self._retire(slot)
                if slot.device is not None:
                    slot.device.close()

    def announce(self) -> bool:
        """Announce one evaluation before `put`. Return whether it is the only one. Raises DeviceError."""
        with self._changed:
            used = self._list_used()
            if not used:
                raise DeviceError("; ".join(self._lost))
            others = len(self._waiting) + self._announced + sum(slot.running for slot in used)
            self._announced += 1
            return others == 0

    def put(self, job: Job) -> None:
        """The evaluation must be announced."""
        with self._changed:
            self._announced -= 1
            if self._closed:
                job.fail(DeviceError("the executor was closed"))
            elif not self._list_used():
                job.fail(DeviceError("; ".join(self._lost)))
            elif not job.future.done():  # its build may have failed
                self._waiting.put(job)
            self._changed.notify_all()

    def status(self) -> tuple[DeviceStatus, ...]:
        with self._changed:
            used = self._list_used()
            shares = share_out(len(self._waiting) + self._announced, len(used)) if used else []
            return tuple(
                DeviceStatus(name=one.name, waiting=share, running=int(one.running), done=one.done)
                for one, share in zip(used, shares, strict=True)
            )

    def end_jobs(self) -> None:
        """Waiting jobs end with DeviceError now, the others when their device is closed. Thread-safe."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            left = self._waiting.clear()
        for job in left:
            job.fail(DeviceError("the executor was closed"))

    def close(self) -> None:
        """All jobs end with DeviceError. Thread-safe."""
        self.end_jobs()
        with self._changed:
            devices = [slot.device for slot in self._slots.values() if slot.device is not None]
        for device in devices:
            device.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, slot: _Slot) -> None:
        while slot.in_use and self._open(slot) and (job := self._take(slot)) is not None:
            self._evaluate(slot, job)

    def _open(self, slot: _Slot) -> bool:
        if slot.device is None:
            try:
                device = self._open_device(slot.name)
            except HarnessError as error:
                self._give_up(slot, f"{slot.name} cannot be used: {error}")
                return False
            with self._changed:
                slot.device, slot.facts = device, device.facts
            slot.opened.set()
            if self._closed:
                device.close()
        return not self._closed

    def _take(self, slot: _Slot) -> Job | None:
        with self._changed:
            while slot.in_use and not self._closed:
                if (job := self._waiting.take(slot.name)) is not None:
                    slot.running = True
                    job.task = job.task.on_device(slot.name)
                    job.upcoming = self._waiting.list_upcoming(job.task.owner)
                    return job
                self._changed.wait()
        return None

    def _evaluate(self, slot: _Slot, job: Job) -> None:
        assert slot.device is not None
        try:
            evaluation = slot.device.evaluate(job)
        except DeviceLost as loss:
            self._note_loss(slot, job, loss)
            return
        except ReferenceStopped as stopped:
            if not self._close_lost(slot, job):
                return
            evaluation = job.task.give_up(Outcome.PROBLEM_ERROR, "reference_stopped", str(stopped))
        except Exception as error:  # noqa: BLE001 - one task must not end the device's thread
            self._end(slot)
            job.future.set_exception(error)
            return
        slot.losses = 0
        self._end(slot)
        job.future.set_result(evaluation)

    def _close_lost(self, slot: _Slot, job: Job) -> bool:
        """End the job and return False if the device was lost because the executor was closed."""
        assert slot.device is not None
        slot.device.close()
        with self._changed:
            slot.device = None
            if self._closed:
                job.fail(DeviceError("the executor was closed"))
            return not self._closed

    def _end(self, slot: _Slot) -> None:
        with self._changed:
            slot.running = False
            slot.done += 1

    def _note_loss(self, slot: _Slot, job: Job, loss: DeviceLost) -> None:
        """Retry the task once, since it may not be the cause. Losses by faults of the device do not count."""
        if not self._close_lost(slot, job):
            return
        slot.losses += 1
        if not loss.for_good:
            job.losses.append(str(loss))
        if len(job.losses) > 1:
            self._end(slot)
            job.future.set_result(self._explain_loss(job))
        else:
            with self._changed:
                slot.running = False
                self._waiting.put(job)
                self._changed.notify_all()
        if loss.for_good:
            self._give_up(slot, f"{slot.name} was taken out of service: {loss}")
        elif slot.losses >= MOST_LOSSES:
            self._give_up(slot, f"{slot.name} was lost {slot.losses} times in a row: {loss}")

    def _give_up(self, slot: _Slot, why: str) -> None:
        with self._changed:
            if not self._closed:
                self._lost.append(why)
        self._retire(slot)
        slot.opened.set()

    def _retire(self, slot: _Slot) -> None:
        with self._changed:
            slot.in_use = False
            self._waiting.forget(slot.name)
            left = [] if self._list_used() else self._waiting.clear()
            for job in left:
                job.fail(DeviceError("; ".join(self._lost)))
            self._changed.notify_all()

    def _list_used(self) -> list[_Slot]:
        return [slot for slot in self._slots.values() if slot.in_use]
