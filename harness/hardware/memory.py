"""Free memory: of the machine, or of the control group that limits this process where that is less. Linux only.

The folders under which the kernel shows both are arguments. Sizes are in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.domain import DeviceError

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Free memory and shared memory, of the machine or of the control group that limits this process."""

    available_bytes: int
    shared_bytes: int


def available_memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    """How much can still be allocated without swapping."""
    return read_memory_state(proc, cgroup).available_bytes


def read_memory_state(proc: Path = PROC, cgroup: Path = CGROUP) -> MemoryState:
    """A control group's cached files count as free: the kernel drops them first."""
    meminfo = (proc / "meminfo").read_text()
    headrooms = [max(limit_bytes - used_bytes, 0) for limit_bytes, used_bytes in _read_control_groups(proc, cgroup)]
    available_bytes = min([_read_meminfo(meminfo, "MemAvailable"), *headrooms])
    return MemoryState(available_bytes=available_bytes, shared_bytes=_read_meminfo(meminfo, "Shmem"))


def total_memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    """The machine's memory, or the limit of the control group."""
    limits = [limit_bytes for limit_bytes, _ in _read_control_groups(proc, cgroup)]
    return min([_read_meminfo((proc / "meminfo").read_text(), "MemTotal"), *limits])


def _read_meminfo(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise DeviceError(f"/proc/meminfo has no {name} line: this kernel is too old")
    return int(found[1]) * 1024


def _read_control_groups(proc: Path, cgroup: Path) -> list[tuple[int, int]]:
    """Limit and use of every control group around this process that limits memory."""
    groups = proc / "self" / "cgroup"
    found = []
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += list(_read_limits(_folders(path, (cgroup, cgroup / "unified")), 2))
        elif "memory" in controllers.split(","):
            found += list(_read_limits(_folders(path, (cgroup / "memory",)), 1))
    return found


def _folders(path: str, roots: Iterable[Path]) -> Iterator[Path]:
    """A group's folder and those above it; in a container its own group may be the top of what can be seen."""
    for root in roots:
        folder = root / path.lstrip("/")
        while folder.is_relative_to(root):
            yield folder
            folder = folder.parent


def _read_limits(folders: Iterable[Path], version: int) -> Iterator[tuple[int, int]]:
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
