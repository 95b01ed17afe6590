"""Huge pages for the 300 MB that `import torch` allocates, which makes fork and exit about five times as fast."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from harness.worker.isolation.linux import libc

HUGE_BYTES = 2 << 20
_MADV_COLLAPSE = 25
_OWN_MEMORY = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*(?:\[heap\])?$", re.MULTILINE)


def collapse_memory() -> int:
    """Returns the bytes collapsed; 0 before Linux 6.1."""
    collapsed_bytes = 0
    for begin, end in _OWN_MEMORY.findall(Path("/proc/self/maps").read_text()):
        first = -(-int(begin, 16) // HUGE_BYTES) * HUGE_BYTES
        size_bytes = int(end, 16) // HUGE_BYTES * HUGE_BYTES - first
        if size_bytes > 0 and _collapse(first, size_bytes):
            collapsed_bytes += size_bytes
    return collapsed_bytes


def _collapse(address: int, size_bytes: int) -> bool:
    return bool(libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), _MADV_COLLAPSE) == 0)
