"""The warm parent of all workers, as the judge has it: started, asked and ended from here.

What it does there is in `harness.worker.forkserver`. It answers in the order in which it is asked, and what is asked
first is done first, whether anybody waits for the answer or not.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from harness.domain import Finding, HarnessError, WireError, WorkerLost, WorkerTimeout
from harness.protocol import Channel, make_pair
from harness.protocol.process_tree import children_of, find_innermost
from harness.sandbox.memory_watchdog import MemoryWatch
from harness.sandbox.policy import (
    Confinement,
    clean_environment,
    device_paths,
    interpreter_folders,
    readable_paths,
    worker_package_files,
)
from harness.sandbox.worker_process import OutputTail, StillRunning, WorkerLimits, WorkerProcess

START_TIMEOUT_S = 120.0
SPAWN_TIMEOUT_S = 20.0
# Threads of OpenMP spin for up to 10 ms after their work, in the way of whoever is timed next; a fraction of a
# millisecond is enough to be awake for the next operation of the same model.
SHORT_SPINS = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
# torch makes device memory of pages that can be shared with the judge, see `gpu.worker_memory`. Its newer
# versions read the second name.
SHAREABLE_MEMORY = dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), "expandable_segments:True")


@dataclass(slots=True)
class _Answer:
    """Of the forkserver: None until it is there."""

    message: dict[str, Any] | None = None


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
        self._owed: deque[_Answer] = deque()  # what it has been asked and has not answered yet, in that order
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
                answer = self._ask(line, request, (theirs.fileno(), output.write_end))
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
                answer = self._ask(self._line, {"kind": "kill", "pid": pid, "grace_s": grace_s})
            except (WorkerLost, WorkerTimeout, WireError):
                self._stop()  # with it go all its workers
                return None
            return None if answer["killed"] or answer["status"] is None else int(answer["status"])

    def begin_pause(self, pid: int, **more: Any) -> _Answer:
        """Has a worker stopped with all its descendants, before anything else that is asked for: see
        `harness.worker.forkserver`. To be given to `finish_pause`."""
        with self._lock:
            return self._send(self._require_line(), {"kind": "pause", "pid": pid, **more})

    def finish_pause(self, answer: _Answer) -> dict[str, Any]:
        """Waits for it. Raises StillRunning if some do not stop."""
        with self._lock:
            stopped = self._await(self._require_line(), answer)
        self.used_s = stopped["server_ns"] / 1e9
        if stopped["running"]:
            raise StillRunning(f"{stopped['running']} of its processes went on although they were stopped")
        return stopped

    def resume(self, pid: int, process: int, core: int | None) -> None:
        """Resumes what was stopped, the main thread of `process` on a certain core."""
        with self._lock:
            if self._line is not None:
                message = {"kind": "resume", "pid": pid, "process": process, "core": core}
                self._line.send(message, timeout_s=SPAWN_TIMEOUT_S)

    def ask_about(self, pid: int, what: str, **more: Any) -> dict[str, Any]:
        """The forkserver's answer about one of its workers."""
        with self._lock:
            return self._ask(self._require_line(), {"kind": what, "pid": pid, **more})

    def _require_line(self) -> Channel:
        if self._line is None:
            raise HarnessError("the forkserver is not running")
        return self._line

    def _ask(self, line: Channel, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        return self._await(line, self._send(line, message, descriptors))

    def _send(self, line: Channel, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> _Answer:
        line.send(message, descriptors, timeout_s=SPAWN_TIMEOUT_S)
        self._owed.append(_Answer())
        return self._owed[-1]

    def _await(self, line: Channel, answer: _Answer) -> dict[str, Any]:
        """It answers in the order in which it was asked: what others wait for may come first."""
        while answer.message is None:
            if not self._owed:
                raise HarnessError("the forkserver was started again before it had answered")
            message, _ = line.receive(timeout_s=SPAWN_TIMEOUT_S)
            self._owed.popleft().message = message
        return answer.message

    def close(self) -> None:
        """Ends the forkserver and all its workers. It can be used again."""
        with self._lock:
            self._stop()

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
        """What every worker is to be surrounded with, as `harness.worker.init_process` takes it."""
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
        environment = clean_environment({"PYTHONPATH": package_root, **nvml, **SHORT_SPINS, **SHAREABLE_MEMORY})
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
        self._outer_id = find_innermost(self._process.pid)
        self._line = line
        return line

    def _last_words(self) -> str:
        if self._words is None:
            return ""
        self._words.seek(0)
        return self._words.read().decode(errors="replace")[-1500:]

    def _stop(self) -> None:
        self._owed.clear()
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


def _find_by_inner_id(parent: int, inner: int) -> int:
    """The child of a process that is called `inner` in that one's own process namespace."""
    for child in children_of(parent):
        ids = re.search(r"^NSpid:\s+(.+)$", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
        if ids is not None and int(ids[1].split()[-1]) == inner:
            return child
    raise HarnessError(f"the worker {inner} is not among the children of the forkserver {parent}")


def _read_by_workers() -> list[Path]:
    return [*interpreter_folders(), *worker_package_files()]
