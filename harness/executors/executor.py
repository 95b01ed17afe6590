"""The protocol of executors, and a loop that runs tasks."""

from __future__ import annotations

import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from harness.domain import Evaluation, HarnessError, Language
from harness.executors.tasks import Task

WAIT_S = 0.2  # per wait, so that Ctrl-C takes effect soon


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """`chip`: GPU or CPU name; `emulated_gpu`: "" for a real device."""

    name: str
    chip: str
    emulated_gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """Numbers of evaluations; `waiting` includes builds."""

    name: str
    waiting: int
    running: int
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorStatus:
    """`builds`: see `Builder.counts`; `lost`: a sentence per abandoned device; `failure`: why only a new executor would
    evaluate again; `waits_for`: what keeps a device from going on, or ""."""

    building: int
    builds: dict[str, int]
    devices: tuple[DeviceStatus, ...]
    lost: tuple[str, ...] = ()
    failure: str = ""
    waits_for: str = ""


class Executor(Protocol):
    """Thread-safe."""

    @property
    def capacity(self) -> int:
        """Tasks that keep all devices and build slots busy."""

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        """If empty, candidates are only built."""

    def submit(self, task: Task) -> Future[Evaluation]:
        """Failing candidates are results; exceptions are the executor's own."""

    def status(self) -> ExecutorStatus: ...

    def close(self) -> None:
        """Running evaluations raise."""


Report = Callable[[Task, Evaluation], None]
Reserve = Callable[[Task], AbstractContextManager[bool]]


def reserve_always(task: Task) -> AbstractContextManager[bool]:
    return nullcontext(True)


def run_tasks(
    executor: Executor, tasks: Sequence[Task], report: Report, reserve: Reserve = reserve_always
) -> list[Task]:
    """Reports each result in this thread; returns the tasks that `reserve` refused (False).

    Reserves only as many as keep the executor busy. Raises the first HarnessError after all running tasks have ended.
    """
    waiting, refused, errors = deque(tasks), list[Task](), list[HarnessError]()
    running: dict[Future[Evaluation], tuple[Task, ExitStack]] = {}
    seeds: defaultdict[str, int] = defaultdict(partial(secrets.randbits, 62))  # by problem
    try:
        while (waiting and not errors) or running:
            while waiting and not errors and len(running) < executor.capacity:
                task = waiting.popleft()
                with ExitStack() as reservation:
                    if reservation.enter_context(reserve(task)):
                        running[executor.submit(_add_seed(task, seeds))] = (task, reservation.pop_all())
                    else:
                        refused.append(task)
            done, _ = wait(running, timeout=WAIT_S, return_when=FIRST_COMPLETED)
            for future in done:
                task, reservation = running.pop(future)
                with reservation:
                    try:
                        report(task, future.result())
                    except HarnessError as error:
                        errors.append(error)
    finally:
        for _, reservation in running.values():
            reservation.close()
    if errors:
        raise errors[0]
    return refused


def _add_seed(task: Task, seeds: Mapping[str, int]) -> Task:
    """Candidates of one problem get the same inputs and weights, which are made once: they cannot talk to each
    other."""
    return replace(task, seed=seeds[task.problem.digest]) if task.seed is None else task
