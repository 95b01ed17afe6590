"""Stops and ends one worker process, and limits its processes' memory. `worker_client` sends its commands."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.domain import HarnessError
from harness.hardware.host import MemoryState, count_oom_kills, read_memory_state, total_memory_bytes
from harness.protocol import Channel
from harness.protocol.channel import ForkserverRequest
from harness.protocol.process_tree import find_innermost, find_tree, read_bytes, state_of, threads_of

if TYPE_CHECKING:
    from harness.sandbox.forkserver import Forkserver

CHECK_EVERY_S = 0.05
FLOOR_BYTES = 1 << 30  # kept free for other processes; less on a small machine
FLOOR_SHARE = 0.05
BLOCK_BYTES = 512  # of st_blocks on every file system
MAX_OPEN_FILES = 16_384  # of all processes of a worker: each check lists them
RECOVERY_S, RECOVERY_SHARE = 3.0, 0.5  # share of the memory that is freed once the worker ended
_UNLIMITED_BYTES = 1 << 60
_PRIVATE = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)


class MemoryWatch:
    """With `limit_bytes` None, only the machine's free memory is limited."""

    def __init__(
        self, pid: int, limit_bytes: int | None, read_machine: Callable[[], MemoryState] | None = None
    ) -> None:
        self._pid = pid
        self._limit_bytes = limit_bytes
        self._look_at_machine = read_machine or read_memory_state
        self._checked_s = 0.0
        self._at_shortage_bytes = 0
        self._at_first_bytes = _count_private(find_tree(pid))  # mostly shared with the forkserver
        self._machine_at_first = self._look_at_machine()
        self._kills_at_first = count_oom_kills()
        self._floor_bytes = min(FLOOR_BYTES, int(total_memory_bytes() * FLOOR_SHARE))

    def find_overuse(self, arena: int, every_s: float = 0.0) -> str | None:
        """Return None within `every_s` after a check. Raises HarnessError if another program took the memory."""
        now_s = time.monotonic()
        if now_s - self._checked_s < max(every_s, CHECK_EVERY_S):
            return None
        self._checked_s = now_s
        tree = [_find_live_thread(process) for process in find_tree(self._pid)]
        opened = _list_open_files(tree)
        if opened is None:
            return f"its processes have more than {MAX_OPEN_FILES} files open"
        own = os.fstat(arena)
        sizes: dict[tuple[int, int], int] = {}
        for link in opened:
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.readlink(link).startswith("/memfd:"):  # noqa: PTH115 - the bare string
                    file = os.stat(link)  # noqa: PTH116
                    sizes[file.st_dev, file.st_ino] = file.st_blocks * BLOCK_BYTES
        sizes.pop((own.st_dev, own.st_ino), None)
        files_bytes = sum(sizes.values())
        used_bytes = _count_private(tree) - self._at_first_bytes + files_bytes
        if self._limit_bytes is not None and used_bytes > self._limit_bytes:
            # Shared pages were counted once per process; an exact count takes longer.
            used_bytes = min(used_bytes, _count_exactly(tree) + files_bytes)
            if used_bytes > self._limit_bytes:
                limit = _megabytes(self._limit_bytes)
                return f"its processes hold {_megabytes(used_bytes)} of memory together; the limit is {limit}"
        return self._find_shortage(used_bytes)

    def has_seen_oom_kill(self) -> bool:
        return (count_oom_kills() or 0) > (self._kills_at_first or 0)

    def explain_shortage(self, error: HarnessError) -> str:
        """Call after `find_overuse` raised `error`. Return a message if the worker's end freed memory, else raise."""
        short_bytes = self._at_shortage_bytes
        wanted_bytes = short_bytes + RECOVERY_SHARE * (self._machine_at_first.available_bytes - short_bytes)
        deadline_s = time.monotonic() + RECOVERY_S
        while self._look_at_machine().available_bytes < wanted_bytes:
            if time.monotonic() > deadline_s:
                raise error
            time.sleep(CHECK_EVERY_S)
        return f"only {_megabytes(short_bytes)} of memory were free on this machine until the worker was ended"

    def _find_shortage(self, used_bytes: int) -> str | None:
        machine = self._look_at_machine()
        if machine.available_bytes >= self._floor_bytes:
            return None
        self._at_shortage_bytes = machine.available_bytes
        taken_bytes = self._machine_at_first.available_bytes - machine.available_bytes
        hidden_bytes = machine.shared_bytes - self._machine_at_first.shared_bytes
        message = f"only {_megabytes(machine.available_bytes)} of memory are free on this machine"
        if max(used_bytes, hidden_bytes) * 2 < taken_bytes:
            raise HarnessError(f"{message}, and the candidate is not the cause; free some and evaluate it again")
        return f"{message}; {_megabytes(taken_bytes)} were taken since the worker started"


def _count_private(processes: Iterable[int]) -> int:
    return sum(_sum_kilobytes(f"/proc/{process}/status", _PRIVATE) for process in processes)


def _count_exactly(processes: Iterable[int]) -> int:
    return sum(_sum_kilobytes(f"/proc/{process}/smaps_rollup", _SHARED_OUT) for process in processes)


def _sum_kilobytes(path: str, pattern: re.Pattern[bytes]) -> int:
    try:
        text = read_bytes(path)
    except (FileNotFoundError, ProcessLookupError):
        return 0  # the process ended
    except PermissionError:
        return _UNLIMITED_BYTES  # hidden; the first count, which cannot be, was over the limit
    return sum(map(int, pattern.findall(text))) * 1024


def _find_live_thread(process: int) -> int:
    """/proc shows nothing for a main thread that has ended."""
    if state_of(process, process) != "Z":
        return process
    return next((thread for thread in threads_of(process) if thread != process), process)


def _list_open_files(processes: Iterable[int]) -> list[str] | None:
    found: list[str] = []
    for process in processes:
        with contextlib.suppress(OSError):  # ended, or hidden
            names = os.listdir(f"/proc/{process}/fd")  # noqa: PTH208 - half the time of a Path
            found += [f"/proc/{process}/fd/{name}" for name in names]
        if len(found) > MAX_OPEN_FILES:
            return None
    return found


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.0f} MiB"


KEPT_OUTPUT_BYTES = 8000
STOP_TIMEOUT_S = 3.0  # for processes that were told to stop
MAX_HANDLES = 32  # processes that are stopped without the forkserver


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    memory_bytes: int | None = 8 << 30
    scratch_bytes: int = 1 << 30
    processes: int = 512
    cpu_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """`used_ns`: CPU time of all processes; `resumed_ns`: last resume, monotonic; `seen`: bytes, None if unmapped;
    `repeats`: a page is at several addresses.
    """

    used_ns: int
    resumed_ns: int
    seen: tuple[bytes | None, ...]
    repeats: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePlace:
    """`installed` files exist on this machine under that `path`; of others the `code` around the place was read."""

    path: str
    installed: bool
    offset: int  # in the file
    code: bytes


CodeTrace = tuple[CodePlace, ...]  # of a thread: its instruction, then its callers as far as its stack shows


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSample:
    """What threads executed in one instant, and whether files that are not installed are mapped as code."""

    traces: Sequence[CodeTrace]
    maps_custom_code: bool


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
        self.server = server
        self._pid = pid
        self._outer_pid = outer_pid
        self._keepers = {outer_pid}  # trusted processes around the worker, and
        self._innermost = outer_pid  # the worker, in this namespace
        self.line = line
        self._output = output
        self.watch = watch
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
            self._status = self.server.kill(self._pid, self._outer_pid, grace_s)
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

    def begin_pause(
        self, places: Sequence[tuple[int, int]] = (), spans: Sequence[tuple[int, int]] = ()
    ) -> Callable[[], Stopped]:
        """Request the stop; return a function that waits, reads `places` (address, bytes), and looks for pages that are
        repeated in `spans` (address, end). It raises StillRunning.
        """
        finish = self._begin_stop(ForkserverRequest.PAUSE, places=list(places), spans=list(spans))
        return lambda: _read_stopped(finish())

    def resume(self) -> None:
        self.server.resume(self._pid)

    def begin_sample(self, delay_us: float) -> Callable[[], CodeSample | None]:
        """Request a resume and a short stop after `delay_us`; return a function that waits and tells what executed
        then, None if unknown. It raises StillRunning.
        """
        finish = self._begin_stop(ForkserverRequest.SAMPLE, places=[], spans=[], delay_us=int(delay_us))
        return lambda: _read_sample(finish())

    def _begin_stop(self, request: ForkserverRequest, **more: Any) -> Callable[[], dict[str, Any]]:
        return self.server.begin_stop(request, self._pid, process=self._process, patience_s=STOP_TIMEOUT_S, **more)

    def find_itself(self) -> None:
        """Find the process to sample. Call it before any candidate code runs."""
        self._process = int(self.server.ask_about(self._pid, ForkserverRequest.FIND)["process"])
        self._innermost = find_innermost(self._outer_pid)
        self._keepers = find_tree(self._outer_pid) - {self._innermost}
        self.find_processes()

    def find_overuse(self, arena: int, every_s: float) -> str | None:
        if self._ended:
            return None
        try:
            return self.watch.find_overuse(arena, every_s)
        except HarnessError as error:
            self.end()
            return self.watch.explain_shortage(error)

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
        repeats=answer["repeats"],
    )


def _read_sample(answer: dict[str, Any]) -> CodeSample | None:
    if answer["threads"] is None:
        return None
    traces = [
        tuple(CodePlace(**{**one, "code": bytes.fromhex(one["code"])}) for one in places)
        for places in answer["threads"]
    ]
    return CodeSample(traces=traces, maps_custom_code=answer["maps_custom_code"])


class StillRunning(Exception):
    pass
