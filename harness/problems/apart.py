"""Runs code of problem files in a separate process."""

from __future__ import annotations

import atexit
import fcntl
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from harness.domain import HarnessError, Problem, ReferenceStopped, WorkloadName
from harness.problems.steps import STEPS, set_reference_limit
from harness.problems.watched_process import ProcessEnded, WatchedProcess, connect

Result = TypeVar("Result")
_PROGRAM = "from harness.problems.apart import main; main()"
_LOCK = threading.Lock()
_started: list[WatchedProcess] = []  # at most one: torch is imported once
_running: list[WatchedProcess] = []  # a call


def run_apart(function: Callable[..., Result], *arguments: object) -> Result:
    """Run in this process if it is itself watched. Raises HarnessError, or ReferenceStopped if the code ends its
    process or exceeds its time limit.
    """
    if STEPS.is_shared:
        return function(*arguments)
    with _LOCK:
        process = _started.pop() if _started else WatchedProcess(_PROGRAM)
        _running.append(process)
        try:
            process.send((function, arguments, STEPS.limit_s))
            answer = pickle.loads(process.receive())
        except ProcessEnded as error:
            raise ReferenceStopped(f"the process that runs code of problem files {error}") from error
        except BaseException:
            process.kill()
            raise
        finally:
            _running.remove(process)
        _started.append(process)
    if isinstance(answer, HarnessError):
        raise answer
    result: Result = answer
    return result


def list_running_steps() -> list[tuple[str, float, float]]:
    """Return name, limit and deadline of each step, of calls in other threads."""
    return [step for process in tuple(_running) for step in process.list_steps()]


def describe_inputs(problem: Problem, workload: WorkloadName) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Raises HarnessError for a file that does not load."""
    return run_apart(_describe_inputs, problem, workload)


def read_init_inputs(problem: Problem, workload: WorkloadName) -> tuple[Any, ...]:
    return run_apart(_read_init_inputs, problem, workload)


def _describe_inputs(problem: Problem, workload: WorkloadName) -> tuple[tuple[str, tuple[int, ...]], ...]:
    from harness.problems.loading import load_problem

    return load_problem(problem, workload).describe_inputs()


def _read_init_inputs(problem: Problem, workload: WorkloadName) -> tuple[Any, ...]:
    from harness.problems.loading import load_problem

    return load_problem(problem, workload).init_inputs


@atexit.register
def _end() -> None:
    for process in _started:
        process.kill()


def main() -> None:
    line, _ = connect(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    flags = fcntl.fcntl(line.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(line.fileno(), fcntl.F_SETOWN, -os.getpgrp())  # with processes that the code has started
    fcntl.fcntl(line.fileno(), fcntl.F_SETSIG, signal.SIGKILL)
    with suppress(EOFError):
        while True:
            function, arguments, limit_s = line.recv()
            set_reference_limit(limit_s)
            fcntl.fcntl(line.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)  # ends with the other process, whatever runs
            answer = _call(function, arguments)
            fcntl.fcntl(line.fileno(), fcntl.F_SETFL, flags)
            line.send(answer)


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> bytes:
    """Pickle the result here: a Connection would share the memory of tensors, which ends with this process."""
    try:
        answer: object = function(*arguments)
    except HarnessError as error:
        answer = error
    try:
        return pickle.dumps(answer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return pickle.dumps(HarnessError(f"{type(error).__name__}: {error}"))
