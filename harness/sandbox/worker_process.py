"""Stops and ends one worker process. `worker_client` sends its commands."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from harness.domain import HarnessError
from harness.domain.options import option
from harness.protocol import Channel
from harness.protocol.messages import ForkserverRequest
from harness.protocol.process_tree import find_innermost, find_tree
from harness.sandbox.memory_watchdog import MemoryWatch

if TYPE_CHECKING:
    from harness.sandbox.forkserver import Forkserver

KEPT_OUTPUT_BYTES = 8000
FIRST_CALL_S = 300.0
STOP_TIMEOUT_S = 1.0  # for processes that were told to stop
MAX_HANDLES = 32  # processes that are stopped without the forkserver


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    memory_bytes: int | None = 8 << 30
    scratch_bytes: int = 1 << 30
    processes: int = 512
    cpu_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Builds do not count. `first_call_s` limits the first call in each worker of a program that compiles in it; that
    of other programs has `call_s`.
    """

    title: ClassVar[str] = "Evaluation"

    call_s: float = option(60.0, "Limit for one call.", key="call_timeout", min=0.1, metavar="SECONDS")
    first_call_s: float = option(
        None,
        "Limit for the first call in each worker of programs that compile in it. "
        "[default: 300, or --call-timeout if longer]",
        key="first_call_timeout",
        kind=float | None,
        min=0.1,
        metavar="SECONDS",
    )
    load_s: float = option(
        120.0,
        "Limit for importing and for constructing a candidate, without its builds.",
        key="load_timeout",
        min=0.1,
        metavar="SECONDS",
    )

    def __post_init__(self) -> None:
        if self.first_call_s is None:
            object.__setattr__(self, "first_call_s", max(FIRST_CALL_S, self.call_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """`used_ns` is the CPU time of all processes; `resumed_ns` is the monotonic time of the last resume; `seen` are
    sampled bytes, None if unmapped.
    """

    used_ns: int
    resumed_ns: int
    seen: tuple[bytes | None, ...]


class OutputTail:
    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._read_end, self.write_end = os.pipe()
        self._head = b""
        self._tail = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with os.fdopen(self._read_end, "rb", buffering=0) as stream:
            while part := stream.read(1 << 16):
                self._count(len(part))
                free_bytes = KEPT_OUTPUT_BYTES - len(self._head)
                self._head += part[:free_bytes]
                self._tail = (self._tail + part[free_bytes:])[-KEPT_OUTPUT_BYTES:]

    def await_end(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def text(self) -> str:
        self.await_end(0.2)
        gap = b"\n[...]\n" if len(self._tail) == KEPT_OUTPUT_BYTES else b""
        return (self._head + gap + self._tail).decode(errors="replace")


class WorkerProcess:
    def __init__(
        self, server: Forkserver, pid: int, *, outer_pid: int, line: Channel, output: OutputTail, watch: MemoryWatch
    ) -> None:
        """`pid` is in the forkserver's PID namespace."""
        self._server = server
        self._pid = pid
        self._outer_pid = outer_pid
        self._keepers = {outer_pid}  # trusted processes around the worker, and
        self._innermost = outer_pid  # the worker, in this namespace
        self.line = line
        self._output = output
        self._watch = watch
        self._status: int | None = None
        self._ended = False
        self._process = pid
        self._handles: dict[int, int] = {}  # pidfds by process id, for `stop_at_once`
        self._leave: Callable[[], object] | None = None

    def end(self, *, grace_s: float = 0.0) -> int | None:
        """Return the exit status (128 + n for signal n); None if killed or unknown."""
        if not self._ended:
            self._ended = True
            self.line.close()
            self._keep_handles(set())
            self._status = self._server.kill(self._pid, self._outer_pid, grace_s)
        return self._status

    def end_with(self, leave: Callable[[], object]) -> None:
        self._leave = leave

    def find_processes(self) -> None:
        """The worker must be stopped."""
        others = find_tree(self._outer_pid) - self._keepers - {self._innermost}
        self._keep_handles({self._innermost, *sorted(others)[:MAX_HANDLES]})

    def stop_at_once(self) -> None:
        """`pause` or `resume_at_once` must follow."""
        self._signal(signal.SIGSTOP)

    def resume_at_once(self) -> None:
        self._signal(signal.SIGCONT)

    def print_stack(self) -> None:
        """Ends the worker."""
        self._signal(signal.SIGABRT)

    def _signal(self, number: signal.Signals) -> None:
        for handle in self._handles.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, number)

    def _keep_handles(self, processes: set[int]) -> None:
        """A pidfd never refers to another process with a reused id."""
        for process in self._handles.keys() - processes:
            os.close(self._handles.pop(process))
        for process in processes - self._handles.keys():
            with contextlib.suppress(OSError):
                self._handles[process] = os.pidfd_open(process)

    def begin_pause(self, places: Sequence[tuple[int, int]] = ()) -> Callable[[], Stopped]:
        """Request the stop, ahead of later requests; return a function that waits and reads these (address, bytes). It
        raises StillRunning.
        """
        more = {"places": list(places), "patience_s": STOP_TIMEOUT_S}
        answer = self._server.begin_pause(self._pid, process=self._process, **more)
        return lambda: _read_stopped(self._server.finish_pause(answer))

    def resume(self) -> None:
        self._server.resume(self._pid)

    def server_used_s(self) -> float:
        return self._server.used_s

    def forget_use(self) -> bool:
        return self._server.ask_about(self._pid, ForkserverRequest.FORGET_USE, process=self._process)["done"] is True

    def count_used_bytes(self) -> int | None:
        used_bytes = self._server.ask_about(self._pid, ForkserverRequest.COUNT_USED, process=self._process)[
            "used_bytes"
        ]
        return None if used_bytes is None else int(used_bytes)

    def find_itself(self) -> None:
        """Find the process to sample. Call it before any candidate code runs."""
        self._process = int(self._server.ask_about(self._pid, ForkserverRequest.FIND)["process"])
        self._innermost = find_innermost(self._outer_pid)
        self._keepers = find_tree(self._outer_pid) - {self._innermost}
        self.find_processes()

    def find_overuse(self, arena: int, every_s: float) -> str | None:
        if self._ended:
            return None
        try:
            return self._watch.find_overuse(arena, every_s)
        except HarnessError as error:
            self.end()
            return self._watch.explain_shortage(error)

    def report_first_call(self, began_s: float | None) -> None:
        self._server.report_first_call(began_s)

    def has_seen_oom_kill(self) -> bool:
        return self._watch.has_seen_oom_kill()

    def printed(self) -> str:
        return self._output.text()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        (self._leave or self.end)()


def _read_stopped(answer: dict[str, Any]) -> Stopped:
    return Stopped(
        used_ns=answer["used_ns"],
        resumed_ns=answer["resumed_ns"],
        seen=tuple(None if seen is None else bytes.fromhex(seen) for seen in answer["seen"]),
    )


class StillRunning(Exception):
    pass
