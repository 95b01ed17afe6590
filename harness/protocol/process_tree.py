"""Trees of processes as /proc has them, for both ends: who descends from whom. Linux only."""

from __future__ import annotations

import contextlib
import os


def find_tree(pid: int) -> set[int]:
    """A process and its descendants, as /proc has them now."""
    tree: set[int] = set()
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        if process not in tree:
            tree.add(process)
            waiting += children_of(process)
    return tree


def find_innermost(pid: int) -> int:
    """The last of a chain of processes that wait for each other: what a sandbox program finally runs."""
    while children := children_of(pid):
        pid = children[0]
    return pid


def children_of(process: int) -> list[int]:
    """Children of all threads of a process; none if it has just ended."""
    found: list[int] = []
    for thread in threads_of(process):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, read_bytes(f"/proc/{process}/task/{thread}/children").split())
    return found


def threads_of(process: int) -> list[int]:
    """Ids of a process's threads; none if it has just ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]  # noqa: PTH208 - half the time of a Path
    return []


def state_of(process: int, thread: int) -> str:
    """The letter that /proc shows for a thread, such as "R" for one that runs; "" if it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return read_bytes(f"/proc/{process}/task/{thread}/stat").rpartition(b")")[2].split()[0].decode()
    return ""


def read_bytes(path: str) -> bytes:
    """All of a file of /proc: these are read many times between two calls that are timed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 14):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)
