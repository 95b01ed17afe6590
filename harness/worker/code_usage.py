"""Detects, from the forkserver, whether a worker has executed machine code of the candidate.

Linux sets a referenced bit per page. Candidate code is mapped from files in the worker's scratch folder, or
unlinked. Anonymous code (oneDNN, JIT) is ignored.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.protocol.process_tree import read_bytes

_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ \S+ (\d+) +(.*)$")
_REFERENCED = re.compile(rb"^Referenced: +(\d+) kB$")
# Values for /proc/<pid>/clear_refs. Clearing the soft-dirty bits also flushes the TLB: cached translations would not
# set the referenced bit again.
_FORGET_USE, _FORGET_WRITES = b"1", b"4"


def forget_use(process: int) -> bool:
    """Clear the referenced bits of all pages of a stopped process. Returns False if Linux does not support it."""
    try:
        for order in (_FORGET_USE, _FORGET_WRITES):
            Path(f"/proc/{process}/clear_refs").write_bytes(order)
    except OSError:
        return False
    return True


def count_used_bytes(process: int) -> int | None:
    """Returns None if unknown."""
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
    """Compare inodes only: on overlay file systems, stat and mappings report different devices."""
    try:
        return os.stat(path).st_ino == int(inode)  # noqa: PTH116 - bytes
    except (OSError, ValueError):  # ValueError: not a valid path
        return False
