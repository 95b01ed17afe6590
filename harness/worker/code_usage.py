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

from harness.protocol.process_tree import read_bytes

_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ \S+ (\d+) +(.*)$")
_REFERENCED = re.compile(rb"^Referenced: +(\d+) kB$")
# In the words of /proc/<pid>/clear_refs: forget the use of all pages; and forget which were written, which also empties
# the processor's own memory of pages (TLB). The use of a page that is still in there would not be noted.
_FORGET_USE, _FORGET_WRITES = b"1", b"4"


def forget_use(process: int) -> bool:
    """Has the kernel note anew which pages are used. The process must be stopped. False: this kernel does not."""
    try:
        for order in (_FORGET_USE, _FORGET_WRITES):
            Path(f"/proc/{process}/clear_refs").write_bytes(order)
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
            counts = b"x" in mapping[1] and mapping[2] != b"0" and not _is_installed(mapping[2], mapping[3])
        elif counts and (referenced := _REFERENCED.match(line)):
            used_kib += int(referenced[1])
    return used_kib * 1024


def _is_installed(inode: bytes, path: bytes) -> bool:
    """Whether this process sees a file at the same place that is the same one, as far as its number says that. (Of
    layered file systems the kernel names one device to who asks for a file, and another to who asks for a mapping.)"""
    try:
        return os.stat(path).st_ino == int(inode)  # noqa: PTH116 - bytes
    except (OSError, ValueError):  # ValueError: of a name that no path can be
        return False
