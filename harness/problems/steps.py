"""Records the steps of problem files' code with their deadlines, in memory shared with a watching process.

That code may end its process or never end (`harness.problems.watched_process`).
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness.domain import HarnessError, ProblemError, ReferenceStopped

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
