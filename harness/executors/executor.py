"""The protocol of executors, and the loop that keeps one busy with a list of tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Protocol

from harness.domain import Evaluation, HarnessError, Language
from harness.executors.tasks import Task

WAIT_S = 0.2  # at a time, so that Ctrl-C is heard at once


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """One device. `chip` is the GPU's or the CPU's name; `emulated_gpu` what is emulated, "" for a real device."""

    name: str
    chip: str
    emulated_gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """Evaluations of one device: those that wait to be built or evaluated, the one that runs, those that ended."""

    name: str
    waiting: int
    running: int
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorStatus:
    """`building`: candidates that are being built or wait for it; `builds`: builds so far, see `Builder.counts`;
    `lost`: one sentence for each device that was given up."""

    building: int
    builds: dict[str, int]
    devices: tuple[DeviceStatus, ...]
    lost: tuple[str, ...] = ()


class Executor(Protocol):
    """Evaluates tasks. All methods may be called from several threads."""

    @property
    def capacity(self) -> int:
        """How many tasks keep every device and every build slot busy; more may be submitted, and wait."""

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        """The devices for candidates of a language; empty where there is none, and these are only built."""

    def submit(self, task: Task) -> Future[Evaluation]:
        """Starts one evaluation. A failing candidate is a result; the exception of a future is the executor's own."""

    def status(self) -> ExecutorStatus: ...

    def close(self) -> None:
        """Ends every process that was started; evaluations under way end with an exception."""


Report = Callable[[Task, Evaluation], None]
Reserve = Callable[[Task], AbstractContextManager[bool]]


def reserve_always(task: Task) -> AbstractContextManager[bool]:
    """Every task is this process's own."""
    return nullcontext(True)


def run_tasks(
    executor: Executor, tasks: Sequence[Task], report: Report, reserve: Reserve = reserve_always
) -> list[Task]:
    """Evaluates all tasks and reports each as it ends, in this thread; returns those that `reserve` refused (False).

    Only as many as keep the executor busy are reserved and submitted at a time. Raises HarnessError where the executor
    could not evaluate a task, after everything that was under way has ended and is reported.
    """
    waiting, refused, errors = deque(tasks), list[Task](), list[HarnessError]()
    running: dict[Future[Evaluation], tuple[Task, ExitStack]] = {}
    try:
        while (waiting and not errors) or running:
            while waiting and not errors and len(running) < executor.capacity:
                task = waiting.popleft()
                with ExitStack() as reservation:
                    if reservation.enter_context(reserve(task)):
                        running[executor.submit(task)] = (task, reservation.pop_all())
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
