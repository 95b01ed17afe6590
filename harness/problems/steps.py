"""The steps of problem files' code: what runs, and until when.

That code may end its process, or never end, so another process watches it (`harness.problems.watched_process`). The
watched one notes its steps in memory that both share.
"""

from __future__ import annotations

import itertools
import json
import mmap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness.domain import ReferenceStopped

DEFAULT_LIMIT_S = 600.0
MEMORY_BYTES = 1 << 16
END_ADVICE = "remove calls such as sys.exit(), exit(), os._exit() and os.exec*()"


class RunningSteps:
    """Of all threads of a process, in shared memory."""

    def __init__(self) -> None:
        self.limit_s = DEFAULT_LIMIT_S
        self._memory: mmap.mmap | None = None
        self._lock = threading.Lock()
        self._steps: dict[int, tuple[str, float, float]] = {}  # by number: name, limit, deadline
        self._numbers = itertools.count()

    @property
    def is_shared(self) -> bool:
        return self._memory is not None

    def share(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, MEMORY_BYTES)

    def begin(self, name: str) -> int:
        number = next(self._numbers)
        self._note({number: (name, self.limit_s, time.monotonic() + self.limit_s)})
        return number

    def end(self, number: int) -> None:
        self._note({}, ended=number)

    def _note(self, begun: dict[int, tuple[str, float, float]], ended: int = -1) -> None:
        with self._lock:
            self._steps |= begun
            self._steps.pop(ended, None)
            if self._memory is not None:
                text = json.dumps(list(self._steps.values())).encode()[:MEMORY_BYTES]
                self._memory[: len(text) + 1] = text + b"\0"


def read_steps(memory: mmap.mmap) -> list[tuple[str, float, float]]:
    """Name, limit and deadline of each; none while they are written, or where code of a problem file wrote there."""
    with suppress(ValueError, TypeError, RecursionError, OverflowError):
        steps = json.loads(memory[:].partition(b"\0")[0])
        return [(str(name), float(limit_s), float(deadline_s)) for name, limit_s, deadline_s in steps]
    return []


STEPS = RunningSteps()


def set_reference_limit(limit_s: float) -> None:
    """Sets the limit per step, in seconds, for this process and those that it starts for problem files."""
    STEPS.limit_s = limit_s


@contextmanager
def limit_reference(step: str) -> Iterator[None]:
    """Raises ReferenceStopped where the step calls `sys.exit`. `step` names the file and function."""
    number = STEPS.begin(step)
    try:
        yield
    except SystemExit as stop:
        raise ReferenceStopped(f"{step} ends the process, with exit code {stop.code}; {END_ADVICE}") from stop
    finally:
        STEPS.end(number)
