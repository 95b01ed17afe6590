"""A warm parent: it has imported torch, holds no device context, and forks one worker per request.

Run as `python -m harness.worker.forkserver DESCRIPTOR`, where the descriptor is the judge's line. It never runs a
candidate itself. A worker lives in its own session and, where the kernel allows it, in its own namespaces, whose
first process is a plain waiting parent: when that goes, the kernel ends everything the candidate started.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from harness.domain import WorkerLost
from harness.wire import Channel
from harness.worker import confine

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED in the kernel's encoding of another process's clock
END_TIMEOUT_S = 10.0  # for the kernel to clear away a worker's namespaces


def serve(judge: Channel) -> None:
    """Answers spawn and kill requests until the judge closes the line."""
    children: dict[int, bool] = {}  # by process id: whether it has namespaces of its own
    judge.send({"kind": "warm", "namespaces": _can_enter_namespaces()})
    while True:
        try:
            message, descriptors = judge.receive()
        except WorkerLost:
            break
        _reap(children)
        if message["kind"] == "spawn":
            _answer_spawn(judge, message, descriptors, children)
        elif message["kind"] == "kill":
            judge.send({"kind": "ended", **_kill(message["pid"], children, message["grace_s"])})
        elif message["kind"] in ("pause", "resume"):
            number = signal.SIGSTOP if message["kind"] == "pause" else signal.SIGCONT
            judge.send({"kind": "signalled", "busy_ns": _count_busy_ns(_signal_tree(message["pid"], number))})
    for pid in list(children):
        _kill(pid, children, 0.0)


def _can_enter_namespaces() -> bool:
    """Tried out in a child, scratch mount included."""
    child = os.fork()
    if child == 0:
        try:
            allowed = confine.enter_namespaces()
            if allowed:
                confine.close_file_system()
                confine.mount_scratch("/tmp", 1 << 20)
            os._exit(0 if allowed else 1)
        except OSError:
            os._exit(1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _answer_spawn(judge: Channel, message: dict[str, Any], descriptors: list[int], children: dict[int, bool]) -> None:
    pid = os.fork()
    if pid == 0:
        _start(judge, message, *descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    children[pid] = message["namespaces"]
    judge.send({"kind": "spawned", "pid": pid})


def _start(judge: Channel, message: dict[str, Any], line: int, output: int) -> None:
    """In the child: becomes the worker, or the parent of its namespaces. Never returns."""
    status = 70
    try:
        judge.close()
        confine.die_with_parent()
        os.setsid()
        confine.redirect_output(output)
        status = _isolate_and_run(message, line)
    except BaseException as error:  # noqa: BLE001 - the child must not fall back into the parent's loop
        with contextlib.suppress(OSError):
            os.write(2, f"worker could not start: {error!r}\n".encode())
    finally:
        os._exit(status)


def _isolate_and_run(message: dict[str, Any], line: int) -> int:
    limits = confine.Limits(**message["limits"])
    scratch = message["scratch"]
    if not message["namespaces"]:
        return _run(line, limits, scratch, "no namespaces")
    if not confine.enter_namespaces():
        raise OSError("namespaces are refused that were allowed before")
    first = os.fork()
    if first:
        os.close(line)
        return _shell_status(os.waitpid(first, 0)[1])
    confine.die_with_parent()
    closed = confine.close_file_system()
    confine.mount_scratch(scratch, limits.scratch_bytes)
    worker = os.fork()
    if worker:
        os.close(line)
        return _wait_for(worker)
    confine.die_with_parent()
    return _run(line, limits, scratch, "namespaces" if closed else "namespaces, files writable")


def _wait_for(worker: int) -> int:
    """Process 1 of the namespaces: collects orphans until the worker ends."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            return _shell_status(status)


def _shell_status(status: int) -> int:
    """An exit code that also tells a signal: 128 + its number, as shells have it."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _run(line: int, limits: confine.Limits, scratch: str, level: str) -> int:
    from harness.worker.program import run_worker

    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    confine.apply_limits(limits)
    confine.drop_privileges()
    run_worker(Channel(socket.socket(fileno=line)), scratch=scratch, level=level)
    return 0


def _reap(children: dict[int, bool]) -> None:
    for pid in list(children):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            del children[pid]


def _kill(pid: int, children: dict[int, bool], grace_s: float) -> dict[str, Any]:
    """Ends a worker with its process group, after giving it `grace_s` to end by itself.

    Its exit status (None if it was collected before), and whether it is this signal that ended it.
    """
    if pid not in children:
        return {"status": None, "killed": False}
    finished, status = _wait_shortly(pid, grace_s)
    if not finished:
        # The first process of the namespaces is among these. The kernel ends the others before it is gone, and only
        # then its parent, `pid`, ends: nothing is left when that is collected.
        _signal_tree(pid, signal.SIGKILL, spare=pid)
        ended, status = _wait_shortly(pid, END_TIMEOUT_S if children[pid] else 0.0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not finished and not ended:
        status = os.waitpid(pid, 0)[1]
    del children[pid]
    return {"status": _shell_status(status), "killed": not finished}


def _count_busy_ns(processes: set[int]) -> int:
    """The processor time that these have used, threads that have ended included: to the nanosecond once stopped."""
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):  # it has just ended
            total += time.clock_gettime_ns((~process << 3) | _PROCESS_CLOCK)
    return total


def _signal_tree(pid: int, number: int, *, spare: int = 0) -> set[int]:
    """Signals a worker with all that it started, whatever sessions they made; the processes there were.

    Looks again until nobody new is found: a process that has been stopped starts no others.
    """
    reached: set[int] = set()
    while new := _find_tree(pid) - reached:
        for process in new - {spare}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        reached |= new
    return reached


def _find_tree(pid: int) -> set[int]:
    """A process and its descendants, as /proc has them now."""
    tree: set[int] = set()
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        if process not in tree:
            tree.add(process)
            waiting += _children_of(process)
    return tree


def _children_of(process: int) -> list[int]:
    """Children of all threads of a process; none if it has just ended."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def require_child_lists() -> None:
    """Raises OSError on a kernel that does not list a process's children: nothing could be stopped as a whole."""
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        raise OSError("this kernel has no /proc/<pid>/task/<tid>/children (CONFIG_PROC_CHILDREN)")


def _wait_shortly(pid: int, grace_s: float) -> tuple[int, int]:
    """What waitpid says by then: (0, 0) while it runs."""
    deadline_s = time.monotonic() + grace_s
    while True:
        finished, status = os.waitpid(pid, os.WNOHANG)
        if finished or time.monotonic() >= deadline_s:
            return finished, status
        time.sleep(0.002)


def main() -> None:
    require_child_lists()
    confine.drop_root()
    confine.die_with_parent()  # after the change of user, which would undo it
    line = Channel(socket.socket(fileno=int(sys.argv[1])))
    import torch
    import torch.utils.cpp_extension

    import harness.worker.program  # noqa: F401 - warm

    torch.set_grad_enabled(False)
    gc.freeze()
    serve(line)


if __name__ == "__main__":
    main()
