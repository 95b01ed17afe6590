"""Starts and ends worker processes: one warm forkserver, one worker per candidate, nothing left behind.

Knows nothing of candidates or problems; `harness.judge.client` holds the conversation.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from harness.domain import Finding, HarnessError, WireError, WorkerLost, WorkerTimeout
from harness.judge.confinement import (
    Confinement,
    clean_environment,
    device_paths,
    interpreter_folders,
    readable_paths,
    worker_package_files,
)
from harness.judge.memory import MemoryWatch
from harness.wire import Channel, make_pair
from harness.wire.processes import children_of, find_tree

START_TIMEOUT_S = 120.0
SPAWN_TIMEOUT_S = 20.0
# Threads of OpenMP spin for up to 10 ms after their work, in the way of whoever is timed next; a fraction of a
# millisecond is enough to be awake for the next operation of the same model.
SHORT_SPINS = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
KEPT_OUTPUT_BYTES = 8000
MAX_HANDLES = 32  # processes that are stopped without asking the forkserver


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """Resource limits of one worker. `memory_bytes` None: unlimited address space."""

    memory_bytes: int | None = 8 << 30
    scratch_bytes: int = 1 << 30
    processes: int = 512
    cpu_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Processor time of a worker with all that it started, in nanoseconds: of some threads, and of everything else.

    `gone_ns` is how long processes may have worked besides that were gone before anybody could ask.
    """

    helpers_ns: int
    busy_ns: int
    gone_ns: int = 0

    @property
    def total_s(self) -> float:
        return (self.helpers_ns + self.busy_ns) / 1e9

    def __sub__(self, before: Usage) -> Usage:
        return Usage(
            helpers_ns=self.helpers_ns - before.helpers_ns,
            busy_ns=self.busy_ns - before.busy_ns,
            gone_ns=self.gone_ns - before.gone_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a worker that has been stopped has used so far, and what was seen in its memory; None where nothing lies.
    `has_company`: it has threads or processes that are not its main one, nor torch's own. `resumed_ns`, on the
    monotonic clock, is when it was let go on before that. `code` are the files in whose machine code the threads were
    that were asked for, if that was asked; see `harness.worker.whereabouts`."""

    usage: Usage
    has_company: bool
    resumed_ns: int
    seen: tuple[bytes | None, ...]
    code: tuple[str | None, ...]


class OutputTail:
    """Reads everything a worker prints, in a thread, and keeps the beginning and the end."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._head = b""
        self._tail = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with os.fdopen(self._read_end, "rb", buffering=0) as stream:
            while part := stream.read(1 << 16):
                room = KEPT_OUTPUT_BYTES - len(self._head)
                self._head += part[:room]
                self._tail = (self._tail + part[room:])[-KEPT_OUTPUT_BYTES:]

    def text(self) -> str:
        """What was printed so far, shortened in the middle."""
        self._thread.join(timeout=0.2)
        gap = b"\n[...]\n" if len(self._tail) == KEPT_OUTPUT_BYTES else b""
        return (self._head + gap + self._tail).decode(errors="replace")


class WorkerProcess:
    """One worker: its line, its printed output, and a sure way to end it."""

    def __init__(
        self, server: Forkserver, pid: int, *, outer_pid: int, line: Channel, output: OutputTail, watch: MemoryWatch
    ) -> None:
        """`outer_pid` is what this process knows as the one that the forkserver knows as `pid`."""
        self._server = server
        self._pid = pid
        self._outer_pid = outer_pid
        self._keepers = {outer_pid}  # our own processes around the worker, and
        self._innermost = outer_pid  # itself, as this process knows them
        self.line = line
        self._output = output
        self._watch = watch
        self._status: int | None = None
        self._ended = False
        self._process = pid
        self._handles: dict[int, int] = {}  # descriptors of the processes to be stopped at once, by their ids

    def end(self, *, grace_s: float = 0.0) -> int | None:
        """Ends the worker and everything it started, after `grace_s` for ending by itself.

        Its own exit status (128 + n: signal n); None if it had to be ended, or is unknown.
        """
        if not self._ended:
            self._ended = True
            self.line.close()
            self._keep_handles(set())
            self._status = self._server.kill(self._pid, grace_s)
        return self._status

    def find_processes(self) -> None:
        """Notes what `stop_at_once` is to stop: the worker, and what it has started so far (a part of them where these
        are many). It must be stopped itself."""
        others = find_tree(self._outer_pid) - self._keepers - {self._innermost}
        self._keep_handles({self._innermost, *sorted(others)[:MAX_HANDLES]})

    def stop_at_once(self) -> None:
        """Stops those processes without asking anybody: for `pause`, or `let_go`, to follow."""
        self._signal(signal.SIGSTOP)

    def let_go(self) -> None:
        """Takes `stop_at_once` back."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for handle in self._handles.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, number)

    def _keep_handles(self, processes: set[int]) -> None:
        """Through a descriptor no other process that is given the same number later is ever reached. Where the kernel
        has none, or somebody has ended, there is none."""
        for process in self._handles.keys() - processes:
            os.close(self._handles.pop(process))
        for process in processes - self._handles.keys():
            with contextlib.suppress(OSError):
                self._handles[process] = os.pidfd_open(process)

    def pause(
        self, helpers: Sequence[int] = (), places: Sequence[tuple[int, int]] = (), *, asks_where: bool = False
    ) -> Stopped:
        """Stops the worker and everything it started, until `resume`; what it has used by then, these threads apart,
        what lies in its memory at these (address, bytes), and where these threads are. Raises StillRunning if some do
        not stop."""
        answer = self._server.pause(
            self._pid, threads=list(helpers), process=self._process, places=list(places), asks_where=asks_where
        )
        return Stopped(
            usage=Usage(helpers_ns=answer["helpers_ns"], busy_ns=answer["busy_ns"], gone_ns=answer["gone_ns"]),
            has_company=answer["has_company"],
            resumed_ns=answer["resumed_ns"],
            seen=tuple(None if seen is None else bytes.fromhex(seen) for seen in answer["seen"]),
            code=tuple(answer["code"]),
        )

    def resume(self) -> None:
        self._server.resume(self._pid)

    def server_used_s(self) -> float:
        return self._server.used_s

    def forget_use(self) -> bool:
        """See `harness.worker.own_code`. The worker must be stopped."""
        return self._server.ask_about(self._pid, "forget_use", process=self._process)["done"] is True

    def count_used_bytes(self) -> int | None:
        """See `harness.worker.own_code`. The worker must be stopped."""
        used_bytes = self._server.ask_about(self._pid, "count_used", process=self._process)["used_bytes"]
        return None if used_bytes is None else int(used_bytes)

    def find_helper_threads(self) -> list[int]:
        """Ids, as the forkserver sees them, of all its threads now that are no process's main thread. To be called
        before anything of a candidate runs: the process found then is the one that `pause` looks into."""
        answer = self._server.ask_about(self._pid, "threads", own_root=self._server.has_own_root)
        self._process = int(answer["process"])
        self._innermost = _find_innermost(self._outer_pid)
        self._keepers = find_tree(self._outer_pid) - {self._innermost}
        self.find_processes()
        return [int(thread) for thread in answer["ids"]]

    def find_overuse(self, arena: int, every_s: float) -> str | None:
        """See `harness.judge.memory.MemoryWatch`."""
        if self._ended:
            return None
        try:
            return self._watch.find_overuse(arena, every_s)
        except HarnessError as error:
            self.end()
            return self._watch.explain_shortage(error)

    def printed(self) -> str:
        return self._output.text()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class StillRunning(Exception):
    """Processes of a worker could not be stopped."""


class Forkserver:
    """The warm parent of all workers of one judge. Started on first use, restarted if it was lost."""

    def __init__(self, confinement: Confinement) -> None:
        self._confinement = confinement
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Channel | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._words: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._inner = ""
        self._walls: dict[str, Any] = {}
        self._outer_id = 0  # the forkserver's process id as this process sees it
        self.used_s = 0.0  # processor time of the forkserver itself, as of its last answer about a worker's
        # The kernel ends the forkserver with the *thread* that started it, so one thread that lives as long does.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forkserver")

    def spawn(self, limits: WorkerLimits) -> WorkerProcess:
        """A new worker, ready for commands."""
        with self._lock:
            ours, theirs = make_pair()
            output = OutputTail()
            try:
                line = self._line or self._starter.submit(self._start).result()
                request = {"kind": "spawn", "limits": asdict(limits), **self._walls}
                answer = _ask(line, request, (theirs.fileno(), output.write_end))
            finally:
                theirs.close()
                os.close(output.write_end)
            outer_pid = _find_by_inner_id(self._outer_id, int(answer["pid"]))
            watch = MemoryWatch(outer_pid, limits.memory_bytes)
        line = Channel(ours)
        worker = WorkerProcess(self, int(answer["pid"]), outer_pid=outer_pid, line=line, output=output, watch=watch)
        self._await_first_word(worker)
        return worker

    def kill(self, pid: int, grace_s: float) -> int | None:
        """Ends one worker; its own exit status, None if it was this that ended it."""
        with self._lock:
            if self._line is None:
                return None
            try:
                answer = _ask(self._line, {"kind": "kill", "pid": pid, "grace_s": grace_s}, ())
            except (WorkerLost, WorkerTimeout, WireError):
                self._stop()  # with it go all its workers
                return None
            return None if answer["killed"] or answer["status"] is None else int(answer["status"])

    def pause(self, pid: int, **more: Any) -> dict[str, Any]:
        """Stops a worker with all its descendants: see `harness.worker.forkserver`. Raises StillRunning if some do not
        stop."""
        answer = self.ask_about(pid, "pause", **more)
        self.used_s = answer["server_ns"] / 1e9
        if answer["running"]:
            raise StillRunning(f"{answer['running']} of its processes went on although they were stopped")
        return answer

    def resume(self, pid: int) -> None:
        """Lets what was stopped go on."""
        with self._lock:
            if self._line is not None:
                self._line.send({"kind": "resume", "pid": pid}, timeout_s=SPAWN_TIMEOUT_S)

    def ask_about(self, pid: int, what: str, **more: Any) -> dict[str, Any]:
        """The forkserver's answer about one of its workers."""
        with self._lock:
            if self._line is None:
                raise HarnessError("the forkserver is not running")
            return _ask(self._line, {"kind": what, "pid": pid, **more}, ())

    def close(self) -> None:
        """Ends the forkserver and all its workers. It can be used again."""
        with self._lock:
            self._stop()

    @property
    def has_own_root(self) -> bool:
        """Whether workers are in namespaces of their own, with nobody but the forkserver."""
        return self._confinement.has_own_root

    @property
    def level(self) -> str:
        """The walls that the last worker had, for the record."""
        if not self._inner:
            return "no process started"
        return ", ".join(filter(None, (self._confinement.root_name, self._inner)))

    def find_weakness(self) -> list[Finding]:
        """A warning if the last worker shared its file system or its processes with others."""
        if not self._inner or (self._confinement.has_own_root and "namespaces" in self._inner):
            return []
        why = f": {self._confinement.weakness}" if self._confinement.weakness else ""
        message = f"the candidate ran behind weak walls (only {self.level}){why}"
        return [Finding(check="confinement", severity="warning", message=message)]

    def _await_first_word(self, worker: WorkerProcess) -> None:
        try:
            message, _ = worker.line.receive(timeout_s=SPAWN_TIMEOUT_S)
        except (WorkerLost, WorkerTimeout, WireError) as error:
            worker.end()
            raise HarnessError(f"a worker did not come up ({error}); it printed: {worker.printed()[-500:]}") from error
        self._inner = str(message["level"])

    def _describe_walls(self, folder: str, *, namespaces: bool) -> dict[str, Any]:
        """What every worker is to be surrounded with, as `harness.worker.keeper` takes it."""
        readable = _read_by_workers()
        return {
            "scratch": self._place_scratch(folder, readable, namespaces=namespaces),
            "namespaces": namespaces,
            "filters": self._confinement.filters,
            "own_root": self._confinement.has_own_root,
            "readable": readable_paths(readable),
            "devices": device_paths(),
        }

    def _place_scratch(self, folder: str, readable: list[Path], *, namespaces: bool) -> str:
        """Where a worker's scratch is. With namespaces each mounts its own over one place: /tmp, unless what it must
        read lies below that. Without, each makes a folder of its own there."""
        if not namespaces:
            return "/tmp" if self._confinement.has_own_root else folder
        hides = any(path.resolve().is_relative_to("/tmp") for path in readable)
        return folder if hides else "/tmp"

    def _start(self) -> Channel:
        ours, theirs = make_pair()
        self._folder = tempfile.TemporaryDirectory(prefix="harness-scratch-", ignore_cleanup_errors=True)
        Path(self._folder.name).chmod(0o1733)  # workers may be another user; they make folders, and see no others
        command = [sys.executable, "-m", "harness.worker.forkserver", str(theirs.fileno())]
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - as long-lived as the process
        readable = [*_read_by_workers(), Path(self._folder.name)]
        wrapped = self._confinement.wrap_forkserver(command, readable=readable)
        package_root = str(Path(__file__).resolve().parents[2])
        # Asked through NVML, torch does not touch the CUDA driver at import, which would spoil every forked child.
        nvml = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        environment = clean_environment({"PYTHONPATH": package_root, **nvml, **SHORT_SPINS})
        self._process = subprocess.Popen(
            wrapped, env=environment, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, cwd="/",
            stdout=subprocess.DEVNULL, stderr=self._words, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        line = Channel(ours)
        try:
            warm, _ = line.receive(timeout_s=START_TIMEOUT_S)
        except (WorkerLost, WorkerTimeout, WireError) as error:
            said = self._last_words()
            line.close()
            self._stop()
            raise HarnessError(f"the forkserver did not start: {error}; it said: {said}") from error
        namespaces = self._confinement.namespaces and warm.get("namespaces") is True
        self._walls = self._describe_walls(self._folder.name, namespaces=namespaces)
        self._outer_id = _find_innermost(self._process.pid)
        self._line = line
        return line

    def _last_words(self) -> str:
        if self._words is None:
            return ""
        self._words.seek(0)
        return self._words.read().decode(errors="replace")[-1500:]

    def _stop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2)
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._words is not None:
            self._words.close()
            self._words = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _find_innermost(pid: int) -> int:
    """The last of a chain of processes that wait for each other: what a sandbox program finally runs."""
    while children := children_of(pid):
        pid = children[0]
    return pid


def _find_by_inner_id(parent: int, inner: int) -> int:
    """The child of a process that is called `inner` in that one's own process namespace."""
    for child in children_of(parent):
        ids = re.search(r"^NSpid:\s+(.+)$", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
        if ids is not None and int(ids[1].split()[-1]) == inner:
            return child
    raise HarnessError(f"the worker {inner} is not among the children of the forkserver {parent}")


def _read_by_workers() -> list[Path]:
    return [*interpreter_folders(), *worker_package_files()]


def _ask(line: Channel, message: dict[str, Any], descriptors: tuple[int, ...]) -> dict[str, Any]:
    line.send(message, descriptors, timeout_s=SPAWN_TIMEOUT_S)
    return line.receive(timeout_s=SPAWN_TIMEOUT_S)[0]
