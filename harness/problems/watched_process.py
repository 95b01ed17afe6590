"""Runs code of problem files in a process that records its steps and deadlines in memory, and finds why it ended."""

import atexit
import fcntl
import itertools
import json
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import harness
from harness.domain import HarnessError, Problem, ProblemError, ReferenceStopped, WorkloadName
from harness.protocol.descriptors import make_sealed_memory
from harness.protocol.process_tree import name_signal

DEFAULT_LIMIT_S = 600.0
MEMORY_BYTES = 1 << 16
END_ADVICE = "remove calls such as sys.exit(), exit(), os._exit() and os.exec*()"
CLOSED_CODE = 97  # exit code of a process whose descriptors a step has closed


class ProcessInterrupted(KeyboardInterrupt):
    """The parent, not a problem file's exception, ends this process."""


class RunningSteps:
    def __init__(self) -> None:
        self.limit_s = DEFAULT_LIMIT_S
        self._memory: mmap.mmap | None = None
        self._line: tuple[int, os.stat_result] | None = None
        self._lock = threading.Lock()
        self._steps: dict[int, tuple[str, float, float]] = {}  # by number: name, limit, deadline
        self._numbers = itertools.count()

    @property
    def is_shared(self) -> bool:
        return self._memory is not None

    def share(self, descriptor: int, line: int) -> None:
        self._memory = mmap.mmap(descriptor, MEMORY_BYTES)
        self._line = line, os.fstat(line)

    def begin(self, name: str) -> int:
        number = next(self._numbers)
        self._note({number: (name, self.limit_s, time.monotonic() + self.limit_s)})
        return number

    def end(self, number: int) -> None:
        """End the process if the step closed the connection, since nothing can be reported."""
        if not self._is_connected():
            os._exit(CLOSED_CODE)
        self._note({}, ended=number)

    def _is_connected(self) -> bool:
        if self._line is None:
            return True
        descriptor, opened = self._line
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), opened)
        return False

    def _note(self, begun: dict[int, tuple[str, float, float]], ended: int = -1) -> None:
        with self._lock:
            self._steps |= begun
            self._steps.pop(ended, None)
            if self._memory is not None:
                text = json.dumps(list(self._steps.values())).encode()[:MEMORY_BYTES]
                self._memory[: len(text) + 1] = text + b"\0"


def read_steps(memory: mmap.mmap) -> list[tuple[str, float, float]]:
    """Return name, limit and deadline of each step; none during a write or if a problem file overwrote them."""
    with suppress(ValueError, TypeError, RecursionError, OverflowError):
        steps = json.loads(memory[:].partition(b"\0")[0])
        return [(str(name), float(limit_s), float(deadline_s)) for name, limit_s, deadline_s in steps]
    return []


STEPS = RunningSteps()


def set_reference_limit(limit_s: float) -> None:
    """Set seconds per step, for this process and its children."""
    STEPS.limit_s = limit_s


@contextmanager
def limit_reference(where: str, call: str, advice: str = "") -> Iterator[None]:
    """Raises ReferenceStopped if the step calls `sys.exit`, and ProblemError for its other exceptions.

    In a process that is not watched, KeyboardInterrupt is the user's.
    """
    number = STEPS.begin(f"{where}: {call}")
    try:
        yield
    except (HarnessError, ProcessInterrupted):
        raise
    except SystemExit as stop:
        raise ReferenceStopped(f"{where}: {call} ends the process, with exit code {stop.code}; {END_ADVICE}") from stop
    except BaseException as error:  # user code may raise anything
        if isinstance(error, KeyboardInterrupt) and not STEPS.is_shared:
            raise
        raise ProblemError(f"{_describe_failure(where, call, error)}{advice}") from error
    finally:
        STEPS.end(number)


def _describe_failure(where: str, call: str, error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == where]
    line = f", line {frames[-1].lineno}" if frames else ""
    text = ""
    with suppress(Exception):  # a class of the file may have any __str__
        text = str(error)
    if isinstance(error, ModuleNotFoundError):
        text += ": install the package"
    return f"{where}{line}: {call} raised {type(error).__name__}" + (f": {text}" if text else "")


POLL_S = 0.2
END_S = 5.0  # for a process to end after its last message
CLOSE_ADVICE = "remove calls such as os.closerange() and os.close() of descriptors that the file did not open"


class ProcessEnded(HarnessError):
    """The process ended, but not through a step of a problem file. The message is a predicate."""


class WatchedProcess:
    """Runs `program` with the descriptors of the connection and of the steps' memory, then `arguments`.

    Only `receive` trusts the process.
    """

    def __init__(
        self,
        program: str,
        arguments: Collection[str] = (),
        environment: Mapping[str, str] = os.environ,
        *,
        wrap: Callable[[list[str]], list[str]] = list,
        output: int | None = None,
    ) -> None:
        """`wrap` puts the command into a sandbox; the descriptor `output` defaults to this process's error output."""
        descriptor = make_sealed_memory("steps", MEMORY_BYTES)
        self._steps = mmap.mmap(descriptor, MEMORY_BYTES)
        self._line, theirs = Pipe()
        passed = (theirs.fileno(), descriptor)
        root = str(Path(harness.__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        with theirs:
            self._process = subprocess.Popen(
                wrap([sys.executable, "-u", "-c", program, *map(str, passed), *arguments]),
                env={**environment, "PYTHONPATH": path}, pass_fds=passed, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=sys.__stderr__ if output is None else output, stderr=output,
            )  # fmt: skip
        os.close(descriptor)

    def send(self, message: Any) -> None:
        """Raises ProcessEnded."""
        try:
            self._line.send(message)
        except OSError:
            raise self._explain_end() from None

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def list_steps(self) -> list[tuple[str, float, float]]:
        """Return name, limit and deadline of each running step."""
        return read_steps(self._steps)

    def receive(self) -> Any:
        return pickle.loads(self.receive_bytes())

    def receive_bytes(self, most: int | None = None) -> bytes:
        """Raises ReferenceStopped if a step ends the process or exceeds its time limit.

        Raises ProcessEnded if it ended otherwise, or sent more than `most` bytes.
        """
        try:
            while not self._line.poll(POLL_S):
                self._require_in_time()
                if self._process.poll() is not None and not self._line.poll():
                    raise EOFError  # a process that it left behind holds the connection open
            return self._line.recv_bytes(most)
        except (EOFError, OSError):
            raise self._explain_end() from None

    def end(self, wait_s: float) -> None:
        """Close the connection. A signal would make an interpreter that just starts print a traceback."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._line.fileno())) as line:
            line.shutdown(socket.SHUT_WR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _require_in_time(self) -> None:
        for step, limit_s, deadline_s in self.list_steps():
            if deadline_s < time.monotonic():
                self.kill()
                advice = "correct the file, or allow more time with --reference-timeout"
                raise ReferenceStopped(f"{step} did not end within {limit_s:g} s; {advice}")

    def _explain_end(self) -> HarnessError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        code = self._process.poll()
        self.kill()
        running = self.list_steps()
        if running and code in (None, CLOSED_CODE):
            return ReferenceStopped(f"{running[-1][0]} closes descriptors of the process; {CLOSE_ADVICE}")
        if code is None:
            return ProcessEnded("closed its connection or sent too much")
        by_signal = name_signal(-code) if code < 0 else ""
        if running:
            how = f" by {by_signal}; correct the file" if by_signal else f", with exit code {code}; {END_ADVICE}"
            return ReferenceStopped(f"{running[-1][0]} ends the process{how}")
        return ProcessEnded(f"was ended by {by_signal}" if by_signal else f"ended with exit code {code}")


def connect(arguments: list[str]) -> tuple[Connection, list[str]]:
    """Call in the started process. Return the connection and the other arguments."""
    line, steps, *others = arguments
    STEPS.share(int(steps), int(line))
    return Connection(int(line)), others


Result = TypeVar("Result")
_PROGRAM = "from harness.problems.watched_process import main; main()"
_LOCK = threading.Lock()
_started: list[WatchedProcess] = []  # at most one: torch is imported once
_running: list[WatchedProcess] = []  # a call


def start_ahead() -> None:
    """Start the process of `run_apart`, which imports torch."""
    with _LOCK:
        if not (STEPS.is_shared or _started):
            _started.append(WatchedProcess(_PROGRAM))


def run_apart(function: Callable[..., Result], *arguments: object) -> Result:
    """Run here if watched. Raises HarnessError; ReferenceStopped if the code ends its process or exceeds its time."""
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
    import harness.problems.loading  # noqa: F401 - torch, while the other process still prepares its request

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
