"""Limits the total memory of a worker's processes.

It counts private memory, memory shared between the processes, and memory files. Memory hidden from these counts lowers
the machine's free memory. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable

from harness.domain import HarnessError
from harness.hardware.memory import MemoryState, count_oom_kills, read_memory_state, total_memory_bytes
from harness.protocol.process_tree import find_tree, read_bytes, state_of, threads_of

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
        files_bytes = _count_memory_files(opened, arena)
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
        """Call after `find_overuse` raised `error` and the worker ended. Return a message if that freed memory, since
        some use (such as data in sockets) is not counted; otherwise raise `error`.
        """
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


def _count_memory_files(links: Iterable[str], arena: int) -> int:
    own = os.fstat(arena)
    sizes: dict[tuple[int, int], int] = {}
    for link in links:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.readlink(link).startswith("/memfd:"):  # noqa: PTH115 - the bare string
                file = os.stat(link)  # noqa: PTH116
                sizes[file.st_dev, file.st_ino] = file.st_blocks * BLOCK_BYTES
    sizes.pop((own.st_dev, own.st_ino), None)
    return sum(sizes.values())


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.0f} MiB"
