"""In which file's machine code the threads of a stopped process are, as the kernel has it, seen from the forkserver.

Names files, judges nothing: which of them a thread has any business in is for the judge to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.wire.processes import read_bytes

_CODE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) ..x. \S+ \S+ \d+ *(.*)$", re.MULTILINE)
NO_FILE = "memory without a file"


def find_code(process: int, threads: Iterable[int]) -> list[str | None]:
    """For each thread the file that its next instruction lies in; None where the kernel does not tell."""
    counters = [_read_counter(process, thread) for thread in threads]
    if all(counter is None for counter in counters):
        return [None] * len(counters)
    try:
        text = read_bytes(f"/proc/{process}/maps")
    except OSError:
        return [None] * len(counters)
    areas = [(int(low, 16), int(high, 16), name.decode(errors="replace")) for low, high, name in _CODE.findall(text)]
    return [None if counter is None else _name_area(areas, counter) for counter in counters]


def _read_counter(process: int, thread: int) -> int | None:
    """The address of a stopped thread's next instruction."""
    try:
        words = read_bytes(f"/proc/{process}/task/{thread}/syscall").split()
    except OSError:  # it has ended, or this kernel does not show it
        return None
    return int(words[-1], 16) if len(words) > 2 else None


def _name_area(areas: list[tuple[int, int, str]], counter: int) -> str:
    return next((name or NO_FILE for low, high, name in areas if low <= counter < high), NO_FILE)
