"""How much memory a worker's processes take, and how much is left for all: what limits per process do not bind.

Counts what each process has for itself, memory shared between them, and memory files that nothing maps. What can be
hidden from that shows in the memory that is left. Linux only; sizes in bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.domain import DeviceError, HarnessError
from harness.wire.processes import find_tree, read_bytes, state_of, threads_of

LOOK_EVERY_S = 0.05
FLOOR_BYTES = 1 << 30  # of what must stay free for everybody else, or less on a small machine
FLOOR_SHARE = 0.05
BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are
MAX_OPEN_FILES = 16_384  # of all processes of a worker: each look goes through them
RECOVERY_S, RECOVERY_SHARE = 3.0, 0.5  # of the memory that was taken, once the worker has ended
_UNLIMITED_BYTES = 1 << 60
_OWN = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Free memory and shared memory, of the machine or of the control group that limits this process."""

    available_bytes: int
    shared_bytes: int


class MemoryWatch:
    """Looks after the processes under `pid` (as this process sees it). `limit_bytes` None: only the floor counts."""

    def __init__(self, pid: int, limit_bytes: int | None, look_at_machine: Callable[[], Machine] | None = None) -> None:
        self._pid = pid
        self._limit_bytes = limit_bytes
        self._look_at_machine = look_at_machine or read_machine
        self._looked_s = 0.0
        self._at_shortage_bytes = 0
        self._at_first_bytes = _count_own(find_tree(pid))  # most of it is shared with the process it was forked from
        self._machine_at_first = self._look_at_machine()
        self._floor_bytes = min(FLOOR_BYTES, int(_total_bytes() * FLOOR_SHARE))

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


def available_memory_bytes() -> int:
    """What can still be allocated: on this machine, or in the control group where that is less."""
    return read_machine().available_bytes


def read_machine() -> Machine:
    """As the kernel has it now."""
    meminfo = Path("/proc/meminfo").read_text()
    available_bytes = _read_meminfo(meminfo, "MemAvailable")
    headroom_bytes = min(_find_headrooms(), default=_UNLIMITED_BYTES)
    return Machine(available_bytes=min(available_bytes, headroom_bytes), shared_bytes=_read_meminfo(meminfo, "Shmem"))


def _total_bytes() -> int:
    limits = [limit_bytes for limit_bytes, _ in _read_control_groups()]
    return min([_read_meminfo(Path("/proc/meminfo").read_text(), "MemTotal"), *limits])


def _read_meminfo(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise DeviceError(f"/proc/meminfo has no {name} line: this kernel is too old")
    return int(found[1]) * 1024


def _find_headrooms() -> list[int]:
    """What each limiting control group has left; cached files count as free, for the kernel drops them first."""
    return [max(limit_bytes - used_bytes, 0) for limit_bytes, used_bytes in _read_control_groups()]


def _read_control_groups() -> list[tuple[int, int]]:
    """Limit and use of every control group around this process that limits memory."""
    groups = Path("/proc/self/cgroup").read_text().splitlines() if Path("/proc/self/cgroup").exists() else []
    found = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += list(read_limits(_folders(path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")), 2))
        elif "memory" in controllers.split(","):
            found += list(read_limits(_folders(path, ("/sys/fs/cgroup/memory",)), 1))
    return found


def _folders(path: str, roots: Iterable[str]) -> Iterator[Path]:
    """A group's folder and those above it; in a container its own group may be the top of what can be seen."""
    for root in roots:
        folder = Path(root, path.lstrip("/"))
        while folder.is_relative_to(root):
            yield folder
            folder = folder.parent


def read_limits(folders: Iterable[Path], version: int) -> Iterator[tuple[int, int]]:
    """Limit and use of those of these control groups that have a limit. `version` of the file layout: 1 or 2."""
    limit_name, use_name, cached = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }[version]
    for folder in folders:
        try:
            limit = (folder / limit_name).read_text().strip()
            if limit == "max" or int(limit) >= _UNLIMITED_BYTES:
                continue
            used_bytes = int((folder / use_name).read_text())
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        yield int(limit), used_bytes - int(statistics.get(cached, 0))


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
