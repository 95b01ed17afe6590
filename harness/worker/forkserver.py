"""Imports torch once, without a device context, and forks one worker per request.

Run as `python -m harness.worker.forkserver DESCRIPTOR` (the evaluator's socket). It never runs candidates itself.
"""

import contextlib
import ctypes
import gc
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from harness.domain import WorkerLost
from harness.protocol import Channel
from harness.protocol.channel import ForkserverRequest
from harness.protocol.descriptors import close_all
from harness.protocol.process_tree import find_tree, state_of, threads_of
from harness.worker.compiled_files import preload_compilers
from harness.worker.init_process import run_sandboxed
from harness.worker.isolation import namespaces
from harness.worker.isolation.linux import libc, require_child_lists, shell_status
from harness.worker.mappings import maps_custom_code, read_code_places, repeats_pages

HUGE_BYTES = 2 << 20
_MADV_COLLAPSE = 25
_OWN_MEMORY = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*(?:\[heap\])?$", re.MULTILINE)


def collapse_memory() -> int:
    """Return the bytes collapsed; 0 before Linux 6.1."""
    collapsed_bytes = 0
    for begin, end in _OWN_MEMORY.findall(Path("/proc/self/maps").read_text()):
        first = -(-int(begin, 16) // HUGE_BYTES) * HUGE_BYTES
        size_bytes = int(end, 16) // HUGE_BYTES * HUGE_BYTES - first
        if size_bytes > 0 and _collapse(first, size_bytes):
            collapsed_bytes += size_bytes
    return collapsed_bytes


def _collapse(address: int, size_bytes: int) -> bool:
    return bool(libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), _MADV_COLLAPSE) == 0)


CORES = os.sched_getaffinity(0)
_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED in Linux's encoding of another process's clock
_RUNNING = frozenset("RSD")  # running, sleeping, or in an uninterruptible wait
_ENDED = frozenset("ZX")
STOP_POLL_S = 20e-6
SLEEP_EXCESS_NS = 100_000  # a sleep may take so much longer
MAX_STOPPED_CPU_NS = 20_000  # CPU time consumed while stopped; legitimate programs consume none
# After so many times, one in so many stops, the worker counts as not stoppable. If the host of a virtual machine takes
# the core away at the moment of a stop, that time counts as the process's.
MAX_STOP_VIOLATIONS, VIOLATION_ONE_IN = 3, 8
DRIVER_LIBRARY = "HARNESS_DRIVER_LIBRARY"  # path of the forwarding driver library, on a GPU
END_TIMEOUT_S = 10.0  # to kill everything that a worker started


def serve(evaluator: Channel) -> None:
    children: set[int] = set()  # reaped only on "kill", so that the exit status is not lost
    held: dict[int, PauseControl] = {}  # by worker
    evaluator.send({"kind": "warm", "namespaces": _can_enter_namespaces()})
    while True:
        try:
            message, descriptors = evaluator.receive()
        except WorkerLost:
            break
        if message["kind"] == ForkserverRequest.PRELOAD:
            preload_compilers(message["names"])
            evaluator.send({"kind": message["kind"]})
        elif message["kind"] == ForkserverRequest.SPAWN:
            _answer_spawn(evaluator, message, descriptors, children)
        elif message["kind"] == ForkserverRequest.KILL:
            held.pop(message["pid"], None)
            evaluator.send({"kind": message["kind"], **_kill(message["pid"], children, message["grace_s"])})
        elif message["kind"] in (ForkserverRequest.PAUSE, ForkserverRequest.SAMPLE):
            control = held[message["pid"]]
            stop = control.pause if message["kind"] == ForkserverRequest.PAUSE else control.sample
            evaluator.send({"kind": message["kind"], **stop(message), "server_ns": time.process_time_ns()})
        elif message["kind"] == ForkserverRequest.RESUME:  # no answer: the worker's next message serves as one
            if message["pid"] in held:
                held[message["pid"]].resume()
        elif message["kind"] == ForkserverRequest.FIND:
            worker, supervisors = _find_worker(message["pid"])
            held[message["pid"]] = PauseControl(message["pid"], supervisors)
            evaluator.send({"kind": message["kind"], "process": worker})
    for pid in list(children):
        _kill(pid, children, 0.0)


def _can_enter_namespaces() -> bool:
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


def _answer_spawn(evaluator: Channel, message: dict[str, Any], descriptors: list[int], children: set[int]) -> None:
    pid = os.fork()
    if pid == 0:
        _start(evaluator, message, *descriptors)
    close_all(descriptors)
    children.add(pid)
    evaluator.send({"kind": ForkserverRequest.SPAWN, "pid": pid})


def _start(evaluator: Channel, message: dict[str, Any], connection: int, output: int) -> None:
    status = 70
    try:
        evaluator.close()
        os.sched_setaffinity(0, CORES)
        namespaces.die_with_parent()
        os.setsid()
        namespaces.redirect_output(output)
        status = run_sandboxed(message, connection)
    except BaseException as error:  # noqa: BLE001 - the child must not fall back into the parent's loop
        with contextlib.suppress(OSError):
            os.write(2, f"worker could not start: {error!r}\n".encode())
    finally:
        os._exit(status)


def _kill(pid: int, children: set[int], grace_s: float) -> dict[str, Any]:
    """Let the process group exit for `grace_s`. Return the exit status (None if unknown) and whether it was killed."""
    if pid not in children:
        return {"status": None, "killed": False}
    finished, status = _wait_shortly(pid, grace_s)
    if not finished:
        # `pid` reaps them (see `harness.worker.init_process`), so nothing is left once it has ended.
        _signal_tree(pid, signal.SIGKILL, known=set(), spare={pid})
        ended, status = _wait_shortly(pid, END_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not finished and not ended:
        status = os.waitpid(pid, 0)[1]
    children.remove(pid)
    return {"status": shell_status(status), "killed": not finished}


class PauseControl:
    """Stops and resumes one worker; `supervisors`, the harness's processes around it, keep running."""

    def __init__(self, pid: int, supervisors: set[int]) -> None:
        self._pid = pid
        self._supervisors = supervisors
        self._processes: set[int] = set()  # as of the last stop
        self._busy_ns: dict[int, int] = {}  # CPU time of those that had not ended
        self._resumed_ns = time.monotonic_ns()
        self._stops = self._stop_violations = 0
        self._maps_custom = False  # once it is True, it stays

    def pause(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the number of processes still running, whether they often ran while stopped, their CPU time, the last
        resume, and the requested memory.
        """
        running = self._stop({message["process"]}, message["patience_s"])
        self._stops += 1
        is_usual = self._stop_violations * VIOLATION_ONE_IN >= self._stops
        return {
            "running": running,
            "ran_while_stopped": self._stop_violations >= MAX_STOP_VIOLATIONS and is_usual,
            "used_ns": sum(_read_busy_ns(process) or 0 for process in self._processes | self._supervisors),
            "resumed_ns": self._resumed_ns,
            "seen": _read_memory(message["process"], message["places"]) if message["places"] else [],
            "repeats": bool(message["spans"]) and repeats_pages(message["process"], message["spans"]),
        }

    def sample(self, message: dict[str, Any]) -> dict[str, Any]:
        """Resume, and stop for a moment after `delay_us`. Return what was executing then."""
        self.resume()
        _wait_until(self._resumed_ns + message["delay_us"] * 1000)
        stopped = self.pause(message)
        places = None if stopped["running"] else read_code_places(self._processes)
        self.resume()
        self._maps_custom = self._maps_custom or (places is not None and maps_custom_code(self._processes))
        facts = {name: stopped[name] for name in ("running", "ran_while_stopped")}
        return facts | {"threads": places, "maps_custom_code": self._maps_custom}

    def _stop(self, known: set[int], patience_s: float) -> int:
        """Return 0 once all processes are stopped or have ended; after `patience_s`, the number that still run.

        Exiting processes cannot be stopped, and their end resumes orphaned groups, so states are read again.
        """
        self._processes = (
            _signal_tree(self._pid, signal.SIGSTOP, known=known, spare=self._supervisors) - self._supervisors
        )
        deadline_s = time.monotonic() + patience_s
        ended: set[int] = set()
        while True:
            states = {process: _list_states(process) for process in self._processes}
            running = {process for process, letters in states.items() if letters & _RUNNING}
            ended_before, ended = ended, {process for process, letters in states.items() if not letters - _ENDED}
            if ended and not running:
                running = find_tree(self._pid) - self._processes - self._supervisors
                self._processes |= running
            if (not running and ended == ended_before) or time.monotonic() > deadline_s:
                break
            _signal_all(running, signal.SIGSTOP)
            time.sleep(STOP_POLL_S)  # an exiting process may need this core
        self._busy_ns = {process: _read_busy_ns(process) or 0 for process in states.keys() - ended}
        return len(running)

    def resume(self) -> None:
        """Something else, such as a timer, resumed the processes that ran while stopped. One such run may be chance."""
        if self._ran_while_stopped():
            self._stop_violations += 1
        self._resumed_ns = time.monotonic_ns()
        _signal_all(self._processes, signal.SIGCONT)

    def _ran_while_stopped(self) -> bool:
        stopped_cpu_ns = 0
        for process, before_ns in self._busy_ns.items():
            now_ns = _read_busy_ns(process)
            if now_ns is None:
                return True
            stopped_cpu_ns += now_ns - before_ns
        return stopped_cpu_ns > MAX_STOPPED_CPU_NS


def _wait_until(at_ns: int) -> None:
    time.sleep(max(at_ns - time.monotonic_ns() - SLEEP_EXCESS_NS, 0) / 1e9)
    while time.monotonic_ns() < at_ns:
        pass


def _list_states(process: int) -> set[str]:
    """Reads only the main thread if that one runs."""
    main = state_of(process, process)
    if main in _RUNNING:
        return {main}
    return {main, *(state_of(process, thread) for thread in threads_of(process) if thread != process)} - {""}


def _read_busy_ns(process: int) -> int | None:
    """Return the CPU time, ended threads included; exact only for stopped processes. None if it has ended."""
    try:
        return time.clock_gettime_ns((~process << 3) | _PROCESS_CLOCK)
    except OSError:
        return None


def _find_worker(pid: int) -> tuple[int, set[int]]:
    tree = find_tree(pid)
    worker = next(process for process in tree if find_tree(process) == {process})
    return worker, tree - {worker}


def _read_memory(process: int, ranges: list[list[int]]) -> list[str | None]:
    """Return the memory at each (address, size) in hexadecimal; None where unmapped."""
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            return [_read_range(memory.fileno(), address, size) for address, size in ranges]
    except OSError:
        return [None] * len(ranges)


def _read_range(memory: int, address: int, size: int) -> str | None:
    with contextlib.suppress(OSError, OverflowError):
        return os.pread(memory, size, address).hex()
    return None


def _signal_tree(pid: int, number: int, *, known: set[int], spare: set[int]) -> set[int]:
    """Signal all descendants except `spare` until no new ones appear; those `known` first, which saves a pass."""
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
    deadline_s = time.monotonic() + grace_s
    while True:
        finished, status = os.waitpid(pid, os.WNOHANG)
        if finished or time.monotonic() >= deadline_s:
            return finished, status
        time.sleep(0.002)


def main() -> None:
    require_child_lists()
    namespaces.drop_root()
    namespaces.die_with_parent()  # a change of user resets this
    connection = Channel(socket.socket(fileno=int(sys.argv[1])))
    # Must run before torch is imported: later loads of libcuda.so.1 get the forwarding library.
    path = os.environ.pop(DRIVER_LIBRARY, "")
    if path:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    gc.disable()  # a tenth of the time to import torch
    import torch
    import torch.utils.cpp_extension

    import harness.worker.program  # noqa: F401 - forked with everything imported

    torch.set_grad_enabled(False)
    # Close NVML as often as imports opened it: every worker would inherit it.
    with contextlib.suppress(OSError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        while library.nvmlShutdown() == 0:
            pass
    gc.freeze()
    gc.enable()
    collapse_memory()
    serve(connection)


if __name__ == "__main__":
    main()
