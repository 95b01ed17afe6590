"""From a fresh fork of the forkserver to a worker behind its walls, and the process that stays with it until it ends.

With namespaces that one is process 1 of them: when it goes, the kernel ends everything inside. Without, it adopts what
the worker leaves behind and ends it, and looks after what else namespaces would limit.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from typing import Any

from harness.protocol import Channel
from harness.protocol.process_tree import find_tree
from harness.worker.isolation import namespaces
from harness.worker.isolation.landlock import Access
from harness.worker.isolation.reaper import end_descendants, shell_status, wait_for

LOOK_EVERY_S = 0.25
OWN_THREADS = "/proc/self/task"  # CUDA's driver gives up where it cannot write down its threads' names
MAX_SCRATCH_ENTRIES = 50_000  # where each look has to count them
TOO_MUCH_WRITTEN, TOO_MANY_STARTED = 128 + signal.SIGXFSZ, 128 + signal.SIGTERM


def run_behind_walls(message: dict[str, Any], line: int) -> int:
    """In a child of the forkserver: starts the worker as the judge's request has it; the status it ended with."""
    if message["namespaces"]:
        return _run_in_namespaces(message, line)
    return _run_beside_others(message, line)


def _run_in_namespaces(message: dict[str, Any], line: int) -> int:
    if not namespaces.enter_namespaces():
        raise OSError("namespaces are refused that were allowed before")
    first = os.fork()
    if first:
        os.close(line)
        return shell_status(os.waitpid(first, 0)[1])
    namespaces.die_with_parent()
    closed = namespaces.close_file_system()
    namespaces.mount_scratch(message["scratch"], message["limits"]["scratch_bytes"])
    worker = os.fork()
    if worker:
        os.close(line)
        return wait_for(worker)
    return _run_worker(message, line, message["scratch"], ["namespaces"] if closed else ["namespaces, files writable"])


def _run_beside_others(message: dict[str, Any], line: int) -> int:
    namespaces.adopt_orphans()
    scratch = tempfile.mkdtemp(prefix="worker-", dir=message["scratch"])
    # So that the end of a child is waited for and not missed.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    worker = os.fork()
    if not worker:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        return _run_worker(message, line, scratch, [])
    os.close(line)
    try:
        return _watch(worker, scratch, namespaces.Limits(**message["limits"]))
    finally:
        end_descendants()
        shutil.rmtree(scratch, ignore_errors=True)


def _watch(worker: int, scratch: str, limits: namespaces.Limits) -> int:
    """Until the worker ends, or has written or started too much; how it ended."""
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_EVERY_S)
        while ended := os.waitpid(-1, os.WNOHANG):
            if ended[0] == worker:
                return shell_status(ended[1])
            if ended[0] == 0:
                break
        if len(find_tree(worker)) > limits.processes:  # the kernel's own limit does not bind root
            return TOO_MANY_STARTED
        if _is_over(scratch, limits.scratch_bytes):
            return TOO_MUCH_WRITTEN


def _is_over(folder: str, limit_bytes: int) -> bool:
    """Whether files take more than the limit, are too many to count, or were made unreadable."""
    unreadable: list[OSError] = []
    total_bytes = entries = 0
    for path, folders, files in os.walk(folder, onerror=unreadable.append):
        entries += len(folders) + len(files)
        total_bytes += sum(_allocated_bytes(os.path.join(path, name)) for name in files)  # noqa: PTH118
        if total_bytes > limit_bytes or entries > MAX_SCRATCH_ENTRIES:
            return True
    return any(isinstance(error, PermissionError) for error in unreadable)


def _allocated_bytes(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0  # it has just been removed


def _run_worker(message: dict[str, Any], line: int, scratch: str, walls: list[str]) -> int:
    from harness.worker.program import run_worker

    namespaces.die_with_parent()
    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    tempfile.tempdir = None  # the forkserver may have settled on another folder, which is closed here
    namespaces.apply_limits(namespaces.Limits(**message["limits"]), shares_user=not message["namespaces"])
    namespaces.drop_privileges()
    if message["filters"]:
        walls = walls + namespaces.restrict_calls(_access(message, scratch), has_own_root=message["own_root"])
    run_worker(Channel(socket.socket(fileno=line)), scratch=scratch, level=", ".join([*walls, "rlimits"]))
    return 0


def _access(message: dict[str, Any], scratch: str) -> Access:
    own_memory = ("/dev/shm",) if message["namespaces"] else ()
    own_threads = (OWN_THREADS,) if any("nvidia" in path for path in message["devices"]) else ()
    return Access(
        readable=(*message["readable"], "/proc"),
        writable=(scratch, *own_memory),
        devices=(*message["devices"], *own_threads),
        listable=("/",) if message["own_root"] else (),
    )
