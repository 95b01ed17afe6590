"""Whether a worker's process runs machine code that the candidate brought along, seen from the forkserver.

The kernel notes for each page whether it has been used. Machine code that came with Python and torch lies in files
that the forkserver sees at the same place; what a candidate had built, or made itself, lies in the worker's own scratch
or in no folder at all. Code that is made in memory without a file (of oneDNN, of a just-in-time compiler) is not looked
at.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.wire.processes import read_bytes

_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) +(.*)$")
_REFERENCED = re.compile(rb"^Referenced: +(\d+) kB$")
_PAGES_AND_FILES = b"1"  # what is forgotten, in the words of /proc/<pid>/clear_refs


def forget_use(process: int) -> bool:
    """Has the kernel note anew which pages are used. The process must be stopped. False: this kernel does not."""
    try:
        Path(f"/proc/{process}/clear_refs").write_bytes(_PAGES_AND_FILES)
    except OSError:
        return False
    return True


def count_used_bytes(process: int) -> int | None:
    """How much machine code of its own a stopped process has used since `forget_use`; None where that is not known."""
    try:
        text = read_bytes(f"/proc/{process}/smaps")
    except OSError:
        return None
    used_kib, counts = 0, False
    for line in text.splitlines():
        mapping = _MAPPING.match(line)
        if mapping is not None:
            counts = b"x" in mapping[1] and mapping[4] != b"0" and not _is_installed(mapping)
        elif counts and (referenced := _REFERENCED.match(line)):
            used_kib += int(referenced[1])
    return used_kib * 1024


def _is_installed(mapping: re.Match[bytes]) -> bool:
    """Whether this process sees the same file at the same place."""
    try:
        found = os.stat(mapping[5])  # noqa: PTH116 - bytes
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (os.makedev(int(mapping[2], 16), int(mapping[3], 16)), int(mapping[4]))
