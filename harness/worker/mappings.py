"""Reads what the threads of stopped processes execute, and whether pages are mapped twice, from /proc. Runs in the
forkserver, which never runs candidate code.
"""

import bisect
import mmap
import os
import re
import struct
import time
from collections import defaultdict
from contextlib import suppress
from itertools import islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from harness.protocol.channel import CODE_BYTES
from harness.protocol.process_tree import read_bytes, threads_of

STACK_BYTES = 2048  # searched for return addresses
MOST_CALLERS = 12
_CODE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) ..x\S ([0-9a-f]+) \S+ (\d+) *(.*)$", re.MULTILINE)
_FILE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) (\S+) ([1-9]\d*)")
_STARTED_NS = time.time_ns()
_OF_KERNEL = (b"[vdso]", b"[vsyscall]")
_IN_USER_CODE = b"-1"  # in place of the number of a system call


_Mapping = tuple[int, int, int, bytes, bytes]  # first address, end, offset in the file, inode and path


def read_code_places(processes: set[int]) -> list[list[dict[str, Any]]] | None:
    """For each thread that was executing: the place of its instruction in a file, then its callers', as far as its
    stack shows. None if Linux does not tell.
    """
    threads = []
    for process in processes:
        try:
            threads += _read_threads(process)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return None
    return threads


def maps_custom_code(processes: set[int]) -> bool:
    """Return whether one of the processes may execute a file that is not installed. What cannot be read may be one."""
    for process in processes:
        try:
            files = {(inode, path) for *_, inode, path in _list_code(process) if path and not path.startswith(b"[")}
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return True
        if not all(_is_installed(*file) for file in files):
            return True
    return False


def _read_threads(process: int) -> list[list[dict[str, Any]]]:
    registers = []
    for thread in threads_of(process):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = read_bytes(f"/proc/{process}/task/{thread}/syscall").split()
            registers += [fields[1:3]] if fields[0] == _IN_USER_CODE else []
    if not registers:
        return []
    mappings = _list_code(process)
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        return [_trace(memory.fileno(), mappings, int(at, 16), int(stack, 16)) for stack, at in registers]


def _list_code(process: int) -> list[_Mapping]:
    found = _CODE.findall(read_bytes(f"/proc/{process}/maps"))
    return [(int(start, 16), int(end, 16), int(offset, 16), inode, path) for start, end, offset, inode, path in found]


def _is_installed(inode: bytes, path: bytes) -> bool:
    """Compare inodes only: on overlay file systems, stat and mappings report different devices. Workers' files are
    newer than this process.
    """
    if path in _OF_KERNEL:
        return True
    try:
        file = os.stat(path)  # noqa: PTH116 - bytes
    except (OSError, ValueError):  # ValueError: not a valid path
        return False
    return file.st_ino == int(inode) and file.st_ctime_ns < _STARTED_NS


def _trace(memory: int, mappings: list[_Mapping], instruction: int, stack: int) -> list[dict[str, Any]]:
    words = _read(memory, stack, STACK_BYTES)
    callers = struct.unpack(f"{len(words) // 8}Q", words[: len(words) // 8 * 8])
    first = _locate(memory, mappings, instruction) or {"path": "", "installed": False, "offset": 0, "code": ""}
    places = filter(None, (_locate(memory, mappings, address) for address in callers))
    return [first, *islice(places, MOST_CALLERS)]


def _locate(memory: int, mappings: list[_Mapping], address: int) -> dict[str, Any] | None:
    at = bisect.bisect_right(mappings, address, key=itemgetter(0)) - 1
    if at < 0 or address >= mappings[at][1]:
        return None
    start, _, offset, inode, path = mappings[at]
    path = b"" if path.startswith(b"[") and path not in _OF_KERNEL else path  # programs name memory of theirs
    block, is_installed = address // CODE_BYTES * CODE_BYTES, _is_installed(inode, path)
    code = b"" if is_installed or not path else _read(memory, block, CODE_BYTES)
    place = block - start + offset
    return {"path": os.fsdecode(path), "installed": is_installed, "offset": place, "code": code.hex()}


def _read(memory: int, address: int, size_bytes: int) -> bytes:
    """Return less at the end of a mapping."""
    with suppress(OSError, OverflowError):
        return os.pread(memory, size_bytes, address)
    return b""


def repeats_pages(process: int, spans: list[list[int]]) -> bool:
    """Return whether the memory between these addresses has a page of a file at several of them. Shared anonymous
    memory is a file, too. Memory of no file cannot be mapped twice.
    """
    size, lines = mmap.PAGESIZE, _list_mappings(process)
    parts: dict[tuple[bytes, bytes], list[tuple[int, int]]] = defaultdict(list)
    reached = 0
    for begin, stop in sorted((begin // size * size, -(-end // size) * size) for begin, end in spans):
        for at in range(max(bisect.bisect_right(lines, begin, key=_read_address) - 1, 0), len(lines)):
            if _read_address(lines[at]) >= stop:
                break
            found = _FILE.match(lines[at])
            if found is None:
                continue
            start, end, offset = (int(place, 16) for place in found.groups()[:3])
            first, last = max(start, begin, reached), min(end, stop)
            if first < last:
                parts[found[4], found[5]].append((first - start + offset, last - start + offset))
                reached = last
    return any(after < end for found in parts.values() for (_, end), (after, _) in pairwise(sorted(found)))


def _list_mappings(process: int) -> list[bytes]:
    with suppress(OSError):
        return read_bytes(f"/proc/{process}/maps").split(b"\n")[:-1]  # a path may contain a carriage return
    return []


def _read_address(line: bytes) -> int:
    return int(line[: line.index(b"-")], 16)
