"""Runs compilers in a sandbox with memory and time limits."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from harness.domain import HarnessError

MAX_LOG_CHARACTERS = 400_000
COMPILER_MEMORY_KIB = 12 << 20


class Wrap(Protocol):
    def __call__(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path]) -> list[str]: ...


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
