"""Starts a sandboxed worker in a fork of the forkserver, and supervises it.

With namespaces the supervisor is their PID 1. Without them it kills orphans and limits processes and scratch space.
"""

import faulthandler
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
from harness.worker.isolation.linux import end_descendants, shell_status, wait_for

POLL_S = 0.25
OWN_THREADS = "/proc/self/task"  # CUDA's driver fails if it cannot set its threads' names
MAX_SCRATCH_ENTRIES = 50_000  # without namespaces, where each poll counts them
TOO_MUCH_WRITTEN, TOO_MANY_STARTED = 128 + signal.SIGXFSZ, 128 + signal.SIGTERM


def run_sandboxed(message: dict[str, Any], connection: int) -> int:
    if message["namespaces"]:
        return _run_in_namespaces(message, connection)
    return _run_beside_others(message, connection)


def _run_in_namespaces(message: dict[str, Any], connection: int) -> int:
    if not namespaces.enter_namespaces():
        raise OSError("namespaces are not permitted any more")
    first = os.fork()
    if first:
        os.close(connection)
        return shell_status(os.waitpid(first, 0)[1])
    namespaces.die_with_parent()
    closed = namespaces.close_file_system()
    namespaces.mount_scratch(message["scratch"], message["limits"]["scratch_bytes"])
    worker = os.fork()
    if worker:
        os.close(connection)
        return wait_for(worker)
    return _run_worker(
        message, connection, message["scratch"], ["namespaces"] if closed else ["namespaces, files writable"]
    )


def _run_beside_others(message: dict[str, Any], connection: int) -> int:
    namespaces.adopt_orphans()
    scratch = tempfile.mkdtemp(prefix="worker-", dir=message["scratch"])
    # Keeps SIGCHLD pending for `sigtimedwait`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    worker = os.fork()
    if not worker:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        return _run_worker(message, connection, scratch, [])
    os.close(connection)
    try:
        return _watch(worker, scratch, namespaces.Limits(**message["limits"]))
    finally:
        end_descendants()
        shutil.rmtree(scratch, ignore_errors=True)


def _watch(worker: int, scratch: str, limits: namespaces.Limits) -> int:
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, POLL_S)
        while ended := os.waitpid(-1, os.WNOHANG):
            if ended[0] == worker:
                return shell_status(ended[1])
            if ended[0] == 0:
                break
        if len(find_tree(worker)) > limits.processes:  # RLIMIT_NPROC does not bind root
            return TOO_MANY_STARTED
        if _is_over(scratch, limits.scratch_bytes):
            return TOO_MUCH_WRITTEN


def _is_over(folder: str, limit_bytes: int) -> bool:
    """Unreadable or too many files count as over the limit."""
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
        return 0  # removed meanwhile


def _run_worker(message: dict[str, Any], connection: int, scratch: str, layers: list[str]) -> int:
    from harness.worker.program import run_worker

    namespaces.die_with_parent()
    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    tempfile.tempdir = None  # the forkserver may have cached another folder, which is not accessible here
    namespaces.apply_limits(namespaces.Limits(**message["limits"]), shares_user=not message["namespaces"])
    namespaces.drop_privileges()
    faulthandler.enable(all_threads=False)  # prints where a signal ended the candidate
    if message["filters"]:
        layers = layers + namespaces.restrict_calls(_access(message, scratch), has_own_root=message["own_root"])
    run_worker(Channel(socket.socket(fileno=connection)), scratch=scratch, level=", ".join([*layers, "rlimits"]))
    return 0


def _access(message: dict[str, Any], scratch: str) -> Access:
    shared_folders = ("/dev/shm",) if message["namespaces"] else ("/tmp",) if message["profiled"] else ()
    own_threads = (OWN_THREADS,) if any("nvidia" in path for path in message["devices"]) else ()
    return Access(
        readable=(*message["readable"], "/proc"),
        writable=(scratch, *shared_folders),
        devices=(*message["devices"], *own_threads),
        listable=("/",) if message["own_root"] else (),
    )
