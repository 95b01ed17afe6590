"""Runs compilers in a sandbox with memory and time limits, and limits concurrent builds by free memory."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.domain import HarnessError
from harness.hardware.host import available_memory_bytes

MAX_LOG_CHARACTERS = 400_000
COMPILER_MEMORY_KIB = 12 << 20


class Wrap(Protocol):
    def __call__(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path]) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What a build strategy made; the `reason` is why a faster one was not used."""

    strategy: str
    returncode: int | None
    log: str
    library: Path
    reason: str = ""
    is_uncovered: bool = False


class Runner:
    """Thread-safe."""

    def __init__(
        self, *, wrap: Wrap, readable: Iterable[Path], environment: Callable[[], dict[str, str]], timeout_s: float
    ) -> None:
        self._wrap = wrap
        self._readable = tuple(readable)
        self._environment = environment
        self.timeout_s = timeout_s
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def stop(self) -> None:
        """End running commands and refuse later ones. May be called from any thread."""
        self._stopped = True
        for process in list(self._running):
            _end(process)

    def require_running(self) -> None:
        """Raises HarnessError after `stop`."""
        if self._stopped:
            raise HarnessError("the build was stopped because the harness is ending")

    def run(
        self, command: Sequence[str], work: Path, *, readable: Iterable[Path] = (), timeout_s: float | None = None
    ) -> tuple[int | None, str]:
        """Return exit code (None: time limit) and output. Only `work` is writable. Short work has precedence."""
        limited = ["/bin/sh", "-c", f'ulimit -v {COMPILER_MEMORY_KIB}; exec nice "$@"', "sh", *command]
        wrapped = self._wrap(limited, readable=[*self._readable, *readable], writable=[work])
        with tempfile.TemporaryFile(dir=work.parent) as output:
            process = subprocess.Popen(
                wrapped, cwd=work, env=self._environment(), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            returncode = self._wait(process, self.timeout_s if timeout_s is None else timeout_s)
            output.seek(0)
            text = output.read(MAX_LOG_CHARACTERS).decode(errors="replace")
        return returncode, text

    def _wait(self, process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
        self._running.add(process)
        try:
            if self._stopped:
                _end(process)
            returncode = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            _end(process)
            process.wait()
            self._running.discard(process)
        self.require_running()
        return returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole session, since ninja puts each compiler into its own process group; repeat until none is left."""
    while members := _find_session(process.pid):
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(0.01)


def _find_session(leader: int) -> list[int]:
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    members.append(int(entry.name))
    return members


PLAIN_BUILD_BYTES = 1_300_000_000  # peak: 2.2 GB for nvcc's front end with torch's headers, 1.5 GB for g++
FAST_BUILD_BYTES = 900_000_000
PREBUILT_BYTES = 2_500_000_000
GROWING_S = 20.0  # until then a build may not have reached its peak


class MemoryGate:
    """Thread-safe. One build may always run."""

    def __init__(
        self,
        read_available: Callable[[], int] = available_memory_bytes,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_available = read_available
        self._read_clock = read_clock
        self._changed = threading.Condition()
        self._running: list[tuple[float, int]] = []

    @contextmanager
    def hold(self, need_bytes: int) -> Iterator[None]:
        with self._changed:
            while not self._has_room(need_bytes):
                self._changed.wait(timeout=1.0)
            entry = (self._read_clock(), need_bytes)
            self._running.append(entry)
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(entry)
                self._changed.notify_all()

    def _has_room(self, need_bytes: int) -> bool:
        if not self._running:
            return True
        now = self._read_clock()
        growing = sum(size for began, size in self._running if now - began < GROWING_S)
        return self._read_available() >= need_bytes + growing
