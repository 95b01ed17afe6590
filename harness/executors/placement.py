"""Assigns evaluations to devices, and cores to processes."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from harness.domain import NOTHING_AHEAD, BuiltAhead, Evaluation
from harness.executors.tasks import Task

MOST_IN_A_ROW = 8  # jobs of one owner, while others wait
MOST_OF_A_PROBLEM = 32  # jobs in a row, while others of the owner wait
MOST_UPCOMING = 8  # since each device that may take them builds them
CORES_PER_GPU = (4, 8)  # minimum (one for the worker, its neighbour idle) and maximum


@dataclass(slots=True, kw_only=True)
class Job:
    """`losses` are reasons of device losses that a program may have caused. `upcoming` are waiting tasks of the same
    client. `packed` are archives of builds by another node. Work ahead of a job that is not `is_prepared` would make
    its evaluation shorter. Later submissions have higher numbers.
    """

    task: Task
    number: int = field(default_factory=count().__next__)
    future: Future[Evaluation] = field(default_factory=Future)
    ahead: BuiltAhead = NOTHING_AHEAD
    packed: Mapping[str, bytes] = field(default_factory=dict)
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
    """Evaluations that wait for a device of one kind, in the order of submission, prepared ones first.

    A problem stays on its first device, which measures its noise floor once, unless another would be idle. Up to
    `MOST_IN_A_ROW` jobs of one owner, and of these `MOST_OF_A_PROBLEM` of one problem, follow each other, since
    changes take seconds.
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
    """Give each GPU separate cores, and builds half of all. Share all cores if there are too few or not `separate`, as
    on a CPU device.
    """
    least, most = CORES_PER_GPU
    ordered = sorted(cores)
    share = min(most, len(ordered) // (2 * devices)) if separate else 0
    if share < least:
        return CorePlan(builds=frozenset(ordered), devices=(frozenset(ordered),) * devices, shared=True)
    separated = [frozenset(ordered[index * share : (index + 1) * share]) for index in range(devices)]
    return CorePlan(builds=frozenset(ordered[devices * share :]), devices=tuple(separated), shared=False)
