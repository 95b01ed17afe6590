"""Assigns evaluations to devices, and cores to processes; runs the devices of one kind, of this machine or a cluster,
one thread each. A lost device is reopened; if that fails, the others take over.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable, Collection
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from harness.domain import NOTHING_AHEAD, BuiltAhead, DeviceError, Evaluation, HarnessError, Outcome, ReferenceStopped
from harness.executors.executor import DeviceFacts, DeviceStatus, Task

MOST_IN_A_ROW = 8  # jobs of one owner, while others wait
MOST_OF_A_PROBLEM = 32  # jobs in a row, while others of the owner wait
MOST_UPCOMING = 8  # since each device that may take them builds them
CORES_PER_GPU = (4, 8)  # minimum (one for the worker, its neighbour idle) and maximum


@dataclass(slots=True, kw_only=True)
class Job:
    """`losses` are reasons of device losses that a program may have caused. `upcoming` are waiting tasks of the same
    client. Work ahead of a job that is not `is_prepared` would shorten its evaluation. Later submissions have higher
    numbers.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """The last jobs of a device: how many in a row are `of_owner` and `of_problem`."""

    owner: str = ""
    problem: str = ""
    of_owner: int = 0
    of_problem: int = 0

    def extend(self, task: Task) -> _Row:
        owner, problem = task.owner, task.problem.digest
        return _Row(
            owner=owner,
            problem=problem,
            of_owner=self.of_owner + 1 if owner == self.owner else 1,
            of_problem=self.of_problem + 1 if (owner, problem) == (self.owner, self.problem) else 1,
        )


class JobQueue:
    """Evaluations that wait for a device of one kind, in order, prepared ones first.

    A problem stays on its first device, which knows its noise floor, unless another would be idle. Some jobs of one
    owner, or of one problem, follow each other: changes take seconds.
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._homes: dict[str, str] = {}
        self._rows: dict[str, _Row] = {}  # by device

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Job) -> None:
        insort(self._jobs, job, key=lambda other: other.number)

    def take(self, device: str) -> Job | None:
        """Return None if the queue is empty. Drop cancelled and failed jobs."""
        while self._jobs:
            job = self._jobs.pop(self._choose(device))
            self._homes.setdefault(job.task.problem.digest, device)
            if job.future.done() and not job.future.cancelled():
                continue
            if job.future.running() or job.future.set_running_or_notify_cancel():
                self._rows[device] = self._rows.get(device, _Row()).extend(job.task)
                return job
        return None

    def list_upcoming(self, owner: str) -> tuple[Task, ...]:
        """Return a few tasks of a client in order; none for trusted tasks."""
        return tuple(job.task for job in self._jobs if owner and job.task.owner == owner)[:MOST_UPCOMING]

    def _choose(self, device: str) -> int:
        row, tasks = self._rows.get(device, _Row()), [job.task for job in self._jobs]
        homes = [self._homes.get(task.problem.digest, device) for task in tasks]
        own = [index for index, home in enumerate(homes) if home == device] or list(range(len(tasks)))
        if row.of_owner >= MOST_IN_A_ROW and any(tasks[index].owner != row.owner for index in own):
            return own[0]
        same = [index for index in own if tasks[index].owner == row.owner]
        last = [index for index in same if tasks[index].problem.digest == row.problem]
        chosen = (last if row.of_problem < MOST_OF_A_PROBLEM else []) or same or own
        return next((index for index in chosen if self._jobs[index].is_prepared), chosen[0])

    def forget(self, device: str) -> None:
        self._homes = {problem: home for problem, home in self._homes.items() if home != device}

    def clear(self) -> list[Job]:
        jobs, self._jobs = self._jobs, []
        return jobs


def share_out(count: int, devices: int) -> list[int]:
    return [count // devices + (index < count % devices) for index in range(devices)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """`devices` holds the cores per evaluator process. With `shared`, timing excludes builds."""

    builds: frozenset[int]
    devices: tuple[frozenset[int], ...]
    shared: bool


def divide_cores(cores: Collection[int], devices: int, *, separate: bool) -> CorePlan:
    """Give each GPU separate cores, and builds half of all. Share all if they are too few or not `separate`."""
    least, most = CORES_PER_GPU
    ordered = sorted(cores)
    share = min(most, len(ordered) // (2 * devices)) if separate else 0
    if share < least:
        return CorePlan(builds=frozenset(ordered), devices=(frozenset(ordered),) * devices, shared=True)
    separated = [frozenset(ordered[index * share : (index + 1) * share]) for index in range(devices)]
    return CorePlan(builds=frozenset(ordered[devices * share :]), devices=tuple(separated), shared=False)


MOST_LOSSES = 2  # of devices with one job; a device is given up after one more in a row


class DeviceLost(HarnessError):
    """The process ended or lost the device: `for_good` if no process may use it, `is_reported` if it said so."""

    def __init__(self, reason: str, *, for_good: bool = False, is_reported: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good
        self.is_reported = is_reported


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
    is_excused: bool = False  # its loss has another cause than the program
    running: bool = False
    done: int = 0
    losses: int = 0  # since the last result


class DevicePool:
    """`open_device` returns None for a device that is not wanted, and raises HarnessError. `explain_loss` makes the
    evaluation after `most_losses`. With `can_grow`, jobs wait for more devices if there is none.
    """

    def __init__(
        self,
        names: Collection[str],
        open_device: Callable[[str], OpenDevice | None],
        explain_loss: Callable[[Job], Evaluation],
        *,
        most_losses: int = MOST_LOSSES,
        can_grow: bool = False,
    ) -> None:
        self._open_device = open_device
        self._explain_loss = explain_loss
        self._most_losses = most_losses
        self._can_grow = can_grow
        self._waiting = JobQueue()
        self._announced = 0
        self._changed = threading.Condition()
        self._slots: dict[str, _Slot] = {}
        self._lost: list[str] = []
        self._closed = ""  # the reason
        self._threads: list[threading.Thread] = []
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        slot = _Slot(name=name)
        thread = threading.Thread(target=self._serve, args=(slot,), name=f"device {name}", daemon=True)
        with self._changed:
            self._slots[name] = slot
            self._threads.append(thread)
        thread.start()

    def drop(self, name: str, *, is_excused: bool) -> None:
        """Give the device no more jobs. If it is lost now, no program is the cause if `is_excused`."""
        self._slots[name].is_excused |= is_excused
        self._retire(self._slots[name])

    @property
    def names(self) -> tuple[str, ...]:
        """Include devices that are not used any more."""
        with self._changed:
            return tuple(self._slots)

    @property
    def lost(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._lost)

    @property
    def has_idle_jobs(self) -> bool:
        """Return True if jobs wait and no device is used."""
        with self._changed:
            return bool(len(self._waiting) and not self._list_used())

    def facts(self, timeout_s: float | None = None) -> tuple[DeviceFacts, ...]:
        """Waits for all devices. Raises DeviceError if all failed, or if the time is over."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        for slot in list(self._slots.values()):
            if not slot.opened.wait(None if deadline_s is None else max(deadline_s - time.monotonic(), 0)):
                raise DeviceError(f"{slot.name} was not ready within {timeout_s:g} s: is it in use?")
        with self._changed:
            found = [slot.facts for slot in self._list_used()]
            if not found and not self._can_grow:
                raise DeviceError("; ".join(self._lost) or "the executor was closed")
        return tuple(facts for facts in found if facts is not None)

    def keep_one_chip(self) -> None:
        """Drop devices with another chip than the first: their results are not comparable."""
        first, *others = self.facts()
        for other in others:
            if other.chip != first.chip:
                self._retire(self._slots[other.name])

    def announce(self) -> bool:
        """Announce one evaluation before `put`. Return whether it is the only one. Raises DeviceError."""
        with self._changed:
            used = self._list_used()
            if not used and not self._can_grow:
                raise DeviceError("; ".join(self._lost))
            others = len(self._waiting) + self._announced + sum(slot.running for slot in used)
            self._announced += 1
            return others == 0

    def put(self, job: Job) -> None:
        """The evaluation must be announced."""
        with self._changed:
            self._announced -= 1
            if self._closed:
                job.fail(DeviceError(self._closed))
            elif not self._list_used() and not self._can_grow:
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

    def end_jobs(self, reason: str = "the executor was closed") -> None:
        """Waiting jobs end with DeviceError now, the others when their device is closed. Thread-safe."""
        with self._changed:
            self._closed = self._closed or reason
            self._changed.notify_all()
            left = self._waiting.clear()
        for job in left:
            job.fail(DeviceError(self._closed))

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
        if slot.device is not None and not self._closed:
            slot.device.close()

    def _open(self, slot: _Slot) -> bool:
        if slot.device is None:
            try:
                device = self._open_device(slot.name)
            except HarnessError as error:
                self._give_up(slot, f"{slot.name} cannot be used: {error}")
                return False
            if device is None:
                self._retire(slot)
                slot.opened.set()
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
                    job.task = job.task.on_device(slot.facts.name if slot.facts else slot.name)
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
                job.fail(DeviceError(self._closed))
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
        if not (loss.for_good or slot.is_excused):
            job.losses.append(str(loss))
        if len(job.losses) >= self._most_losses:
            self._end(slot)
            job.future.set_result(self._explain_loss(job))
        else:
            with self._changed:
                slot.running = False
                self._waiting.put(job)
                self._changed.notify_all()
        if loss.for_good:
            self._give_up(slot, f"{slot.name} cannot be used: {loss}")
        elif slot.losses > self._most_losses:
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
            left = [] if self._list_used() or self._can_grow else self._waiting.clear()
            for job in left:
                job.fail(DeviceError("; ".join(self._lost)))
            self._changed.notify_all()

    def _list_used(self) -> list[_Slot]:
        return [slot for slot in self._slots.values() if slot.in_use]
