"""How much memory a worker's processes take, and how much is left for all: what limits per process do not bind.

Counts what each process has for itself, memory shared between them, and memory files that nothing maps. What can be
hidden from that shows in the memory that is left. Linux only; sizes in bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.domain import HarnessError
from harness.hardware.memory import MemoryState, read_memory_state, total_memory_bytes
from harness.protocol.process_tree import find_tree, read_bytes, state_of, threads_of

LOOK_EVERY_S = 0.05
FLOOR_BYTES = 1 << 30  # of what must stay free for everybody else, or less on a small machine
FLOOR_SHARE = 0.05
BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are
MAX_OPEN_FILES = 16_384  # of all processes of a worker: each look goes through them
RECOVERY_S, RECOVERY_SHARE = 3.0, 0.5  # of the memory that was taken, once the worker has ended
_UNLIMITED_BYTES = 1 << 60
_OWN = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)


class MemoryWatch:
    """Looks after the processes under `pid` (as this process sees it). `limit_bytes` None: only the floor counts."""

    def __init__(
        self, pid: int, limit_bytes: int | None, look_at_machine: Callable[[], MemoryState] | None = None
    ) -> None:
        self._pid = pid
        self._limit_bytes = limit_bytes
        self._look_at_machine = look_at_machine or read_memory_state
        self._looked_s = 0.0
        self._at_shortage_bytes = 0
        self._at_first_bytes = _count_own(find_tree(pid))  # most of it is shared with the process it was forked from
        self._machine_at_first = self._look_at_machine()
        self._kills_at_first = count_oom_kills()
        self._floor_bytes = min(FLOOR_BYTES, int(total_memory_bytes() * FLOOR_SHARE))

    def find_overuse(self, arena: int, every_s: float = 0.0) -> str | None:
        """What is wrong, in words; None if nothing is, or if somebody looked a moment ago, or `every_s` ago or later.
        `arena` is the descriptor of the judge's memory file, which does not count.

        Raises HarnessError if memory runs out and it is not the worker that took it.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s < max(every_s, LOOK_EVERY_S):
            return None
        self._looked_s = now_s
        tree = [_find_face(process) for process in find_tree(self._pid)]
        opened = _list_open_files(tree)
        if opened is None:
            return f"its processes have more than {MAX_OPEN_FILES} files open"
        files_bytes = _count_memory_files(opened, arena)
        used_bytes = _count_own(tree) - self._at_first_bytes + files_bytes
        if self._limit_bytes is not None and used_bytes > self._limit_bytes:
            # Pages that several processes share were counted for each of them; an exact count takes longer.
            used_bytes = min(used_bytes, _count_exactly(tree) + files_bytes)
            if used_bytes > self._limit_bytes:
                limit = _megabytes(self._limit_bytes)
                return f"its processes hold {_megabytes(used_bytes)} of memory together; the limit is {limit}"
        return self._find_shortage(used_bytes)

    def has_seen_oom_kill(self) -> bool:
        """Whether the kernel has ended a process since, whichever, because memory ran out."""
        return count_oom_kills() > self._kills_at_first

    def explain_shortage(self, error: HarnessError) -> str:
        """Call when `find_overuse` has raised that, and the worker has ended since: what is wrong in words, if memory
        came back with its end. There are ways to hold memory that no count shows, such as what waits in a socket.
        Raises the error again if it did not."""
        short_bytes = self._at_shortage_bytes
        wanted_bytes = short_bytes + RECOVERY_SHARE * (self._machine_at_first.available_bytes - short_bytes)
        deadline_s = time.monotonic() + RECOVERY_S
        while self._look_at_machine().available_bytes < wanted_bytes:
            if time.monotonic() > deadline_s:
                raise error
            time.sleep(LOOK_EVERY_S)
        return f"only {_megabytes(short_bytes)} of memory were left on this machine until the worker was ended"

    def _find_shortage(self, used_bytes: int) -> str | None:
        machine = self._look_at_machine()
        if machine.available_bytes >= self._floor_bytes:
            return None
        self._at_shortage_bytes = machine.available_bytes
        taken_bytes = self._machine_at_first.available_bytes - machine.available_bytes
        hidden_bytes = machine.shared_bytes - self._machine_at_first.shared_bytes
        message = f"only {_megabytes(machine.available_bytes)} of memory are left on this machine"
        if max(used_bytes, hidden_bytes) * 2 < taken_bytes:
            raise HarnessError(f"{message}, and it is not the candidate that took them; free some, and judge it again")
        return f"{message}; since the worker started {_megabytes(taken_bytes)} were taken"


def count_oom_kills() -> int:
    """Processes that the kernel has ended so far because memory ran out; 0 where it does not tell."""
    found = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def _count_own(processes: Iterable[int]) -> int:
    """Resident pages that are no file's; those that several processes share count for each."""
    return sum(_sum_kilobytes(f"/proc/{process}/status", _OWN) for process in processes)


def _count_exactly(processes: Iterable[int]) -> int:
    return sum(_sum_kilobytes(f"/proc/{process}/smaps_rollup", _SHARED_OUT) for process in processes)


def _sum_kilobytes(path: str, pattern: re.Pattern[bytes]) -> int:
    try:
        text = read_bytes(path)
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just ended
    except PermissionError:
        return _UNLIMITED_BYTES  # it hides its use, and the first count, which it cannot hide, was over the limit
    return sum(map(int, pattern.findall(text))) * 1024


def _find_face(process: int) -> int:
    """The number under which /proc shows what a process has: its own, or where its main thread has ended, and shows
    nothing any more, that of another of its threads."""
    if state_of(process, process) != "Z":
        return process
    return next((thread for thread in threads_of(process) if thread != process), process)


def _list_open_files(processes: Iterable[int]) -> list[str] | None:
    """Links to everything that these have open; None if that is too much to be looked at."""
    found: list[str] = []
    for process in processes:
        with contextlib.suppress(OSError):  # it has just ended, or hides them
            names = os.listdir(f"/proc/{process}/fd")  # noqa: PTH208 - half the time of a Path
            found += [f"/proc/{process}/fd/{name}" for name in names]
        if len(found) > MAX_OPEN_FILES:
            return None
    return found


def _count_memory_files(links: Iterable[str], arena: int) -> int:
    """Pages of the memory files among these, each file once, whether anything maps them or not."""
    own = os.fstat(arena)
    sizes: dict[tuple[int, int], int] = {}
    for link in links:
        with contextlib.suppress(OSError):  # closed a moment ago
            if os.readlink(link).startswith("/memfd:"):  # noqa: PTH115 - the bare text
                file = os.stat(link)  # noqa: PTH116
                sizes[file.st_dev, file.st_ino] = file.st_blocks * BLOCK_BYTES
    sizes.pop((own.st_dev, own.st_ino), None)
    return sum(sizes.values())


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.0f} MiB"
