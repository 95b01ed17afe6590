"""Assigns evaluations to devices, and cores to processes."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from harness.domain import Evaluation
from harness.executors.tasks import Task

MOST_IN_A_ROW = 8  # jobs of one owner, while others wait
MOST_UPCOMING = 8  # since each device that may take them builds them
CORES_PER_GPU = (4, 8)  # minimum (one for the worker, its neighbour idle) and maximum


class PlacedJob(Protocol):
    @property
    def task(self) -> Task: ...

    @property
    def number(self) -> int:
        """Later submissions have higher numbers."""

    @property
    def future(self) -> Future[Evaluation]: ...


J = TypeVar("J", bound=PlacedJob)


class JobQueue(Generic[J]):
    """Evaluations that wait for a device of one kind, in the order of submission.

    A problem stays on its first device, which measures its noise floor once, unless another would be idle. Up to
    `MOST_IN_A_ROW` jobs of one owner follow each other, since another owner's process takes seconds to start.
    """

    def __init__(self) -> None:
        self._jobs: list[J] = []
        self._homes: dict[str, str] = {}
        self._rows: dict[str, tuple[str, int]] = {}  # by device: the last owner, and how many jobs in a row

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: J) -> None:
        insort(self._jobs, job, key=lambda other: other.number)

    def take(self, device: str) -> J | None:
        """Return None if the queue is empty. Drop cancelled and failed jobs."""
        while self._jobs:
            job = self._jobs.pop(self._choose(device))
            self._homes.setdefault(job.task.problem.digest, device)
            if job.future.done() and not job.future.cancelled():
                continue
            if job.future.running() or job.future.set_running_or_notify_cancel():
                owner, row = self._rows.get(device, ("", 0))
                self._rows[device] = (job.task.owner, row + 1 if job.task.owner == owner else 1)
                return job
        return None

    def list_upcoming(self, owner: str) -> tuple[Task, ...]:
        """Return a few tasks of a client in order; none for trusted tasks."""
        return tuple(job.task for job in self._jobs if owner and job.task.owner == owner)[:MOST_UPCOMING]

    def _choose(self, device: str) -> int:
        owner, row = self._rows.get(device, ("", 0))
        homes = [self._homes.get(job.task.problem.digest, device) for job in self._jobs]
        own = [index for index, home in enumerate(homes) if home == device] or [0]
        same = [index for index in own if self._jobs[index].task.owner == owner] if row < MOST_IN_A_ROW else []
        return (same or own)[0]

    def forget(self, device: str) -> None:
        self._homes = {problem: home for problem, home in self._homes.items() if home != device}

    def clear(self) -> list[J]:
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
