"""In which file's machine code the threads of a process are, as the kernel has it, seen from the forkserver.

Names files, judges nothing: which of them a thread has any business in is for the judge to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from harness.wire.processes import read_bytes
from harness.worker.own_code import is_installed

_CODE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) ..x. \S+ \S+ (\d+) *(.*)$", re.MULTILINE)
MAX_NAME = 1000
NO_FILE = "memory without a file"
OWN_FILE = "a file of its own, "  # whatever it is called: one that did not come with Python and torch


def read_counters(process: int, threads: Iterable[int]) -> list[int]:
    """The addresses of the next instructions of these threads, as far as they are stopped and the kernel tells."""
    counters = (_read_counter(process, thread) for thread in threads)
    return [counter for counter in counters if counter is not None]


def name_code(process: int, counters: Collection[int]) -> list[str]:
    """For each address the file whose machine code lies there; none where the kernel does not tell."""
    if not counters:
        return []
    try:
        text = read_bytes(f"/proc/{process}/maps")
    except OSError:
        return []
    areas = [(int(low, 16), int(high, 16), inode, path) for low, high, inode, path in _CODE.findall(text)]
    return [_name_area(areas, counter) for counter in counters]


def _read_counter(process: int, thread: int) -> int | None:
    try:
        words = read_bytes(f"/proc/{process}/task/{thread}/syscall").split()
    except OSError:  # it has ended, or this kernel does not show it
        return None
    return int(words[-1], 16) if len(words) > 2 else None


def _name_area(areas: list[tuple[int, int, bytes, bytes]], counter: int) -> str:
    for low, high, inode, path in areas:
        if low <= counter < high:
            name = path.decode(errors="replace")[:MAX_NAME] or NO_FILE
            return name if inode == b"0" or is_installed(inode, path) else OWN_FILE + name
    return NO_FILE
