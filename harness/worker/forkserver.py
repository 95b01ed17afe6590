"""A warm parent: it has imported torch, holds no device context, and forks one worker per request.

Run as `python -m harness.worker.forkserver DESCRIPTOR`, where the descriptor is the judge's line. It never runs a
candidate itself. A worker lives in its own session, under a process that stays until all it started has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from harness.domain import WorkerLost
from harness.protocol import Channel
from harness.protocol.process_tree import find_tree, state_of, threads_of
from harness.worker.code_usage import count_used_bytes, forget_use
from harness.worker.huge_pages import collapse_memory
from harness.worker.init_process import run_behind_walls
from harness.worker.isolation import namespaces
from harness.worker.isolation.reaper import require_child_lists, shell_status

CORES = os.sched_getaffinity(0)
_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED in the kernel's encoding of another process's clock
_RUNNING = frozenset("RSD")  # not stopped: on a processor, or waiting for something, deaf to signals or not
_ENDED = frozenset("ZX")
STOP_LOOK_EVERY_S = 20e-6
RESTLESS_NS = 20_000  # of processor time, used while everything was stopped: honest ones use none
RESTLESS_TIMES = 3  # so often, and it does not let itself be stopped
END_TIMEOUT_S = 10.0  # for everything that a worker started to be cleared away


def serve(judge: Channel) -> None:
    """Answers spawn and kill requests until the judge closes the line."""
    children: set[int] = set()  # none is waited for before the judge ends it: how it ended would be lost
    held: dict[int, Held] = {}  # by worker
    judge.send({"kind": "warm", "namespaces": _can_enter_namespaces()})
    while True:
        try:
            message, descriptors = judge.receive()
        except WorkerLost:
            break
        if message["kind"] == "spawn":
            _answer_spawn(judge, message, descriptors, children)
        elif message["kind"] == "kill":
            held.pop(message["pid"], None)
            judge.send({"kind": "ended", **_kill(message["pid"], children, message["grace_s"])})
        elif message["kind"] == "pause":
            answer = held.setdefault(message["pid"], Held(message["pid"])).pause(message)
            judge.send({"kind": "paused", **answer, "server_ns": time.process_time_ns()})
        elif message["kind"] == "resume":  # without an answer: what the worker does next is one
            if message["pid"] in held:
                held[message["pid"]].resume(message["process"], message["core"])
        elif message["kind"] == "forget_use":
            judge.send({"kind": "forgotten", "done": forget_use(message["process"])})
        elif message["kind"] == "count_used":
            judge.send({"kind": "counted", "used_bytes": count_used_bytes(message["process"])})
        elif message["kind"] == "find":
            worker, keepers = _find_worker(message["pid"])
            held[message["pid"]] = Held(message["pid"], keepers)
            judge.send({"kind": "found", "process": worker})
    for pid in list(children):
        _kill(pid, children, 0.0)


def _can_enter_namespaces() -> bool:
    """Tried out in a child, scratch mount included."""
    child = os.fork()
    if child == 0:
        try:
            allowed = namespaces.enter_namespaces()
            if allowed:
                namespaces.close_file_system()
                namespaces.mount_scratch("/tmp", 1 << 20)
            os._exit(0 if allowed else 1)
        except OSError:
            os._exit(1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _answer_spawn(judge: Channel, message: dict[str, Any], descriptors: list[int], children: set[int]) -> None:
    pid = os.fork()
    if pid == 0:
        _start(judge, message, *descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    children.add(pid)
    judge.send({"kind": "spawned", "pid": pid})


def _start(judge: Channel, message: dict[str, Any], line: int, output: int) -> None:
    """In the child: becomes the worker, or the parent of its namespaces. Never returns."""
    status = 70
    try:
        judge.close()
        os.sched_setaffinity(0, CORES)
        namespaces.die_with_parent()
        os.setsid()
        namespaces.redirect_output(output)
        status = run_behind_walls(message, line)
    except BaseException as error:  # noqa: BLE001 - the child must not fall back into the parent's loop
        with contextlib.suppress(OSError):
            os.write(2, f"worker could not start: {error!r}\n".encode())
    finally:
        os._exit(status)


def _kill(pid: int, children: set[int], grace_s: float) -> dict[str, Any]:
    """Ends a worker with its process group, after giving it `grace_s` to end by itself.

    Its exit status (None if it is unknown), and whether it is this signal that ended it.
    """
    if pid not in children:
        return {"status": None, "killed": False}
    finished, status = _wait_shortly(pid, grace_s)
    if not finished:
        # `pid` itself waits for them, see `harness.worker.init_process`: nothing is left when that has ended.
        _signal_tree(pid, signal.SIGKILL, known=set(), spare={pid})
        ended, status = _wait_shortly(pid, END_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not finished and not ended:
        status = os.waitpid(pid, 0)[1]
    children.remove(pid)
    return {"status": shell_status(status), "killed": not finished}


class Held:
    """One worker as far as it is stopped and let go on. `keepers` are our own processes around it, which need not be
    stopped with it."""

    def __init__(self, pid: int, keepers: set[int] | None = None) -> None:
        self._pid = pid
        self._keepers = keepers or set()
        self._processes: set[int] = set()  # when it was last stopped, and
        self._busy_ns: dict[int, int] = {}  # what those of them had used that had not ended
        self._resumed_ns = time.monotonic_ns()
        self._times_restless = 0

    def pause(self, message: dict[str, Any]) -> dict[str, Any]:
        """Stops a worker with all that it started. How many processes went on all the same, the processor time that all
        of them have used so far, when they were let go on before that, and what lies at certain places in memory."""
        known = {message["process"]} if self._keepers else set()  # itself, once all around it is known
        running = self._stop(known, message["patience_s"])
        is_restless = message["watches_use"] and self._times_restless >= RESTLESS_TIMES
        return {
            "running": max(running, int(is_restless)),
            "used_ns": sum(_read_busy_ns(process) or 0 for process in self._processes | self._keepers),
            "resumed_ns": self._resumed_ns,
            "seen": _read_memory(message["process"], message["places"]) if message["places"] else [],
        }

    def _stop(self, known: set[int], patience_s: float) -> int:
        """Returns when all are stopped or have ended, or how many still run a while later: somebody continues them.

        What is about to end cannot be stopped, and may hear no signal for a while; when it has ended the kernel
        continues those that it leaves orphaned. So all are looked at again, and who came meanwhile, until nobody ends.
        """
        self._processes = _signal_tree(self._pid, signal.SIGSTOP, known=known, spare=self._keepers) - self._keepers
        deadline_s = time.monotonic() + patience_s
        ended: set[int] = set()
        while True:
            states = {process: _list_states(process) for process in self._processes}
            running = {process for process, letters in states.items() if letters & _RUNNING}
            ended_before, ended = ended, {process for process, letters in states.items() if not letters - _ENDED}
            if ended and not running:
                running = find_tree(self._pid) - self._processes - self._keepers
                self._processes |= running
            if (not running and ended == ended_before) or time.monotonic() > deadline_s:
                break
            _signal_all(running, signal.SIGSTOP)
            time.sleep(STOP_LOOK_EVERY_S)  # it may need this very core to come to its end
        self._busy_ns = {process: _read_busy_ns(process) or 0 for process in states.keys() - ended}
        return len(running)

    def resume(self, process: int = 0, core: int | None = None) -> None:
        """Resumes what was stopped. A process that used the processor meanwhile was continued by something else, such
        as a timer: once may be chance. `core`: where the main thread of `process` goes on."""
        if core is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.sched_setaffinity(process, {core})
        if self._was_restless():
            self._times_restless += 1
        self._resumed_ns = time.monotonic_ns()
        _signal_all(self._processes, signal.SIGCONT)

    def _was_restless(self) -> bool:
        """Whether what was stopped has used the processor since, or is gone: it cannot end without being continued."""
        restless_ns = 0
        for process, before_ns in self._busy_ns.items():
            now_ns = _read_busy_ns(process)
            if now_ns is None:
                return True
            restless_ns += now_ns - before_ns
        return restless_ns > RESTLESS_NS


def _list_states(process: int) -> set[str]:
    """Letters of what its threads do; none if it is gone. Most often the main thread tells that it is not stopped."""
    main = state_of(process, process)
    if main in _RUNNING:
        return {main}
    return {main, *(state_of(process, thread) for thread in threads_of(process) if thread != process)} - {""}


def _read_busy_ns(process: int) -> int | None:
    """The processor time that a process has used, threads that have ended included: to the nanosecond once stopped.
    None if it is gone."""
    try:
        return time.clock_gettime_ns((~process << 3) | _PROCESS_CLOCK)
    except OSError:
        return None


def _find_worker(pid: int) -> tuple[int, set[int]]:
    """Of a worker's tree the worker itself, the process that has started no other so far, and those around it."""
    tree = find_tree(pid)
    worker = next(process for process in tree if find_tree(process) == {process})
    return worker, tree - {worker}


def _read_memory(process: int, places: list[list[int]]) -> list[str | None]:
    """What a process has at these (address, size): hexadecimal, None where it has no memory."""
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            return [_read_place(memory.fileno(), address, size) for address, size in places]
    except OSError:
        return [None] * len(places)


def _read_place(memory: int, address: int, size: int) -> str | None:
    with contextlib.suppress(OSError, OverflowError):
        return os.pread(memory, size, address).hex()
    return None


def _signal_tree(pid: int, number: int, *, known: set[int], spare: set[int]) -> set[int]:
    """Signals a worker with all that it started, whatever sessions they made, but for those to `spare`; all there were.

    Looks until nobody new is found: a process that has been stopped starts no others. Those `known` ahead are signalled
    before the first look, which is then the last one as a rule.
    """
    _signal_all(known, number)
    reached = known | spare
    while new := find_tree(pid) - reached:
        _signal_all(new, number)
        reached |= new
    return reached


def _signal_all(processes: set[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


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
    namespaces.drop_root()
    namespaces.die_with_parent()  # after the change of user, which would undo it
    line = Channel(socket.socket(fileno=int(sys.argv[1])))
    import torch
    import torch.utils.cpp_extension

    import harness.worker.program  # noqa: F401 - warm

    torch.set_grad_enabled(False)
    _let_go_of_nvml()
    gc.freeze()
    collapse_memory()
    serve(line)


def _let_go_of_nvml() -> None:
    """Closes what torch has opened to see whether there is a GPU, at import: every worker would inherit it. Who asks
    again opens it again."""
    with contextlib.suppress(OSError):
        ctypes.CDLL("libnvidia-ml.so.1").nvmlShutdown()


if __name__ == "__main__":
    main()
