"""One process that evaluates on one device: an interpreter of its own, so that nothing else runs while it times, and a
device context that can be lost without the others. Started by `harness.executors.processes`.

It ends with the process that started it. Both ends are the evaluator's own code: messages are pickled.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.domain import Evaluation
    from harness.evaluation.builds import BuiltAhead
    from harness.executors.judges import Judges, Setup
    from harness.executors.tasks import Task
    from harness.sandbox.devices import JudgeDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """`device` as this process sees it. `alone`: what is timed waits for all that runs on the same cores, as builds do;
    otherwise evaluations run beside builds, and what another process times alone waits for both."""

    setup: Setup
    device: str
    checks: bool
    floors: Path | None
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    chip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    task: Task
    ahead: BuiltAhead
    expects_many: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """`build_counts`: all builds of this process so far."""

    evaluation: Evaluation
    build_counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The device cannot be used by this process (any more)."""

    reason: str


def main() -> None:
    """Arguments: the descriptor of the connection, and the cores to run on."""
    descriptor, cores = sys.argv[1:]
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})  # before torch counts them
    signal.signal(signal.SIGINT, _interrupt)
    with Connection(int(descriptor)) as line, suppress(KeyboardInterrupt, BrokenPipeError):
        messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(line, messages), name="messages", daemon=True).start()
        _serve(line, messages)


def _interrupt(*_: object) -> None:
    """Once: what ends this process may come from both ends at the same time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _receive(line: Connection, messages: queue.SimpleQueue[Any]) -> None:
    """In a thread of its own, so that the end of the other process is noticed at any time."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(line.recv())
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _serve(line: Connection, messages: queue.SimpleQueue[Any]) -> None:
    from harness.domain import HarnessError
    from harness.executors.locks import hold_cores_to_build

    start: Start = messages.get()
    try:
        device, judges = _open(start)
    except (HarnessError, RuntimeError) as error:  # torch's own, where a GPU cannot be used
        line.send(Lost(reason=f"{type(error).__name__}: {error}"))
        return
    with closing(judges):
        line.send(Ready(chip=_name_chip(device)))
        while True:
            work = messages.get()
            with nullcontext() if start.alone else hold_cores_to_build():
                answer = _evaluate(device, judges, work)
            line.send(answer)
            if isinstance(answer, Lost):
                return


def _open(start: Start) -> tuple[JudgeDevice, Judges]:
    from harness.executors.judges import Judges
    from harness.executors.locks import hold_cores_to_time
    from harness.problems.time_limit import set_reference_limit
    from harness.sandbox.devices import JudgeDevice
    from harness.sandbox.memory_limits import keep_freed_memory

    settings = start.setup.settings
    set_reference_limit(settings.reference_timeout_s)
    keep_freed_memory()
    device = JudgeDevice(start.device, settings.gpu, memory_bytes=settings.memory_bytes)
    if device.is_cuda:
        _try_device(device)
    judges = partial(Judges, start.setup, device, checks=start.checks, floors=start.floors)
    return device, judges(quiet=hold_cores_to_time) if start.alone else judges()


def _try_device(device: JudgeDevice) -> None:
    """Raises RuntimeError where it does not work."""
    import torch

    torch.ones(1, device=device.torch_device).add_(1)
    torch.cuda.synchronize(device.torch_device)


def _name_chip(device: JudgeDevice) -> str:
    import torch

    from harness.evaluation.environment import cpu_name

    return torch.cuda.get_device_name(device.torch_device) if device.is_cuda else cpu_name()


def _evaluate(device: JudgeDevice, judges: Judges, work: Work) -> Done | Lost:
    from harness.domain import Outcome
    from harness.executors.locks import hold_device

    if work.expects_many:
        judges.expect_many()
    with nullcontext() if device.is_emulated else hold_device(_name_lock(device)):
        evaluation = judges.evaluate(work.task, work.ahead)
        if device.is_cuda and evaluation.outcome is Outcome.HARNESS_ERROR:
            try:
                _try_device(device)
            except RuntimeError as error:  # an illegal access of somebody's has ended this process's context
                return Lost(reason=f"{error}, after {evaluation.message}")
    return Done(evaluation=evaluation, build_counts=dict(judges.build_counts))


def _name_lock(device: JudgeDevice) -> str:
    import torch

    return str(torch.cuda.get_device_properties(device.torch_device).uuid) if device.is_cuda else device.name
