"""The evaluator's side of `harness.worker.forkserver`, which answers requests in order."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from harness.builder.cache import default_cache_folder
from harness.domain import Finding, HarnessError, WireError, WorkerLost, WorkerTimeout
from harness.protocol import Channel, make_pair
from harness.protocol.channel import ForkserverRequest
from harness.protocol.process_tree import children_of, find_innermost
from harness.sandbox.gpu.driver_library import find_driver_library
from harness.sandbox.policy import (
    Isolation,
    clean_environment,
    device_paths,
    interpreter_folders,
    readable_paths,
    worker_package_files,
)
from harness.sandbox.worker_process import MemoryWatch, OutputTail, StillRunning, WorkerLimits, WorkerProcess

START_TIMEOUT_S = 120.0
NVIDIA_DEVICE = "/dev/nvidiactl"
DRIVER_LIBRARY = "HARNESS_DRIVER_LIBRARY"  # read by `harness.worker.forkserver`
SPAWN_TIMEOUT_S = 20.0
END_S = 2.0  # to end by itself, once its connection is closed
MOST_PRINTED = 1 << 20  # bytes that are read of the output of a forkserver or profiler
# OpenMP threads spin for up to 10 ms after their work, which would disturb the next timed process; a fraction of a
# millisecond bridges the gap to the same model's next operation.
SHORT_SPINS = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
# Makes torch allocate device memory that the evaluator can map (`gpu.worker_memory`), and return free memory in
# parts: else a small tensor in a large block would keep all of it. New versions of torch read the second name.
EXPANDABLE_SEGMENTS = dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), "expandable_segments:True")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiler:
    command: tuple[str, ...]
    readable: tuple[Path, ...]


@dataclass(slots=True)
class _Answer:
    message: dict[str, Any] | None = None


class Forkserver:
    def __init__(self, isolation: Isolation, profiler: Profiler | None = None) -> None:
        self._isolation = isolation
        self._profiler = profiler
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Channel | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stderr: IO[bytes] | None = None
        self._printed = ""  # until the last stop
        self._lock = threading.Lock()
        self._level = ""
        self._spawn_settings: dict[str, Any] = {}
        self._outer_id = 0  # the forkserver's process id in this namespace
        self._starting: Future[None] | None = None
        self._preloaded: set[str] = set()
        self._workers: set[int] = set()  # their ids in this namespace
        self._pending: deque[_Answer] = deque()  # to requests not answered yet, in order
        self._printed_bytes = 0  # by workers since `take_printed_bytes`
        self.used_s = 0.0  # CPU time of the forkserver itself at the last stop
        self.unrecordable = ""  # why the work of its workers cannot be recorded
        # Gets True when a candidate's first call begins, and False at its end.
        self.report_first_call: Callable[[bool], None] = lambda begins: None
        # Linux ends the forkserver with the *thread* that started it, so the starting thread lives as long.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forkserver")

    def begin_start(self) -> None:
        with self._lock:
            if self._line is None and self._starting is None:
                self._starting = self._starter.submit(self._start)

    def preload(self, names: Iterable[str]) -> bool:
        """Return False if all were imported."""
        with self._lock:
            missing = set(names) - self._preloaded
            if missing:
                message = {"kind": ForkserverRequest.PRELOAD, "names": sorted(missing)}
                self._ask(self._require_start(), message, timeout_s=START_TIMEOUT_S)
                self._preloaded |= missing
            return bool(missing)

    @property
    def has_preloaded(self) -> bool:
        return bool(self._preloaded)

    def spawn(self, limits: WorkerLimits) -> WorkerProcess:
        with self._lock:
            ours, theirs = make_pair()
            output = OutputTail(self._count_printed)
            try:
                line = self._require_start()
                request = {"kind": ForkserverRequest.SPAWN, "limits": asdict(limits), **self._spawn_settings}
                answer = self._ask(line, request, (theirs.fileno(), output.write_end))
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
                os.close(output.write_end)
            outer_pid = _find_by_inner_id(self._outer_id, int(answer["pid"]))
            self._workers.add(outer_pid)
            watch = MemoryWatch(outer_pid, limits.memory_bytes)
        line = Channel(ours)
        worker = WorkerProcess(self, int(answer["pid"]), outer_pid=outer_pid, line=line, output=output, watch=watch)
        try:
            message, _ = worker.line.receive(timeout_s=SPAWN_TIMEOUT_S)
            worker.find_itself()
        except (WorkerLost, WorkerTimeout, WireError) as error:
            worker.end()
            raise HarnessError(f"a worker did not start ({error}); it printed: {worker.printed()[-500:]}") from error
        except HarnessError:
            worker.end()
            raise
        self._level = str(message["level"])
        return worker

    def kill(self, pid: int, outer_pid: int, grace_s: float) -> int | None:
        """Return the worker's exit status; None if it was killed."""
        with self._lock:
            if self._line is None or outer_pid not in self._workers:
                return None  # it ended with its forkserver; another worker may have `pid` now
            self._workers.remove(outer_pid)
            try:
                answer = self._ask(self._line, {"kind": ForkserverRequest.KILL, "pid": pid, "grace_s": grace_s})
            except (WorkerLost, WorkerTimeout, WireError):
                self._stop()  # with it go all its workers
                return None
            return None if answer["killed"] or answer["status"] is None else int(answer["status"])

    def begin_stop(self, request: ForkserverRequest, pid: int, **more: Any) -> Callable[[], dict[str, Any]]:
        """Request a pause or a sample; return a function that waits for it. It raises StillRunning."""
        with self._lock:
            answer = self._send(self._require_line(), {"kind": request, "pid": pid, **more})
        return lambda: self._finish_stop(answer)

    def _finish_stop(self, answer: _Answer) -> dict[str, Any]:
        with self._lock:
            stopped = self._await(self._require_line(), answer)
        self.used_s = stopped["server_ns"] / 1e9
        if stopped["running"]:
            raise StillRunning(f"{stopped['running']} of its processes kept running after SIGSTOP")
        if stopped["ran_while_stopped"]:
            raise StillRunning("its processes ran while they were stopped")
        return stopped

    def resume(self, pid: int) -> None:
        with self._lock:
            if self._line is not None:
                self._line.send({"kind": ForkserverRequest.RESUME, "pid": pid}, timeout_s=SPAWN_TIMEOUT_S)

    def ask_about(self, pid: int, what: ForkserverRequest, **more: Any) -> dict[str, Any]:
        with self._lock:
            return self._ask(self._require_line(), {"kind": what, "pid": pid, **more})

    def _require_line(self) -> Channel:
        if self._line is None:
            raise HarnessError("the forkserver is not running")
        return self._line

    def _require_start(self) -> Channel:
        if self._process is not None and self._line is not None and self._process.poll() is not None:
            self._stop()  # it was killed
        if self._line is None:
            self._starting = self._starting or self._starter.submit(self._start)
            wait((self._starting,))  # an interrupt leaves the rest to `close`
            starting, self._starting = self._starting, None
            starting.result()
        return self._require_line()

    def _ask(
        self,
        line: Channel,
        message: dict[str, Any],
        descriptors: tuple[int, ...] = (),
        *,
        timeout_s: float = SPAWN_TIMEOUT_S,
    ) -> dict[str, Any]:
        return self._await(line, self._send(line, message, descriptors), timeout_s)

    def _send(self, line: Channel, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> _Answer:
        line.send(message, descriptors, timeout_s=SPAWN_TIMEOUT_S)
        self._pending.append(_Answer())
        return self._pending[-1]

    def _await(self, line: Channel, answer: _Answer, timeout_s: float = SPAWN_TIMEOUT_S) -> dict[str, Any]:
        """Receive the answers to earlier requests, too."""
        while answer.message is None:
            if not self._pending:
                raise HarnessError("the forkserver was restarted before it answered")
            message, _ = line.receive(timeout_s=timeout_s)
            self._pending.popleft().message = message
        return answer.message

    def close(self) -> None:
        """The next use restarts it."""
        with self._lock:
            if self._starting is not None:
                with contextlib.suppress(HarnessError):
                    self._starting.result()
                self._starting = None
            self._stop()

    @property
    def can_profile(self) -> bool:
        """Return True if its isolation also covers the profiler, or is disabled."""
        return self._isolation.namespaces or not self._isolation.filters

    def profile_with(self, profiler: Profiler) -> Forkserver:
        return Forkserver(self._isolation, profiler)

    def finish(self, timeout_s: float) -> str:
        """Return what was printed, at the latest after `timeout_s`."""
        with self._lock:
            self._stop(timeout_s)
        return self._printed

    def abort(self) -> None:
        """May be called from any thread."""
        process = self._process
        if process is not None:
            process.kill()

    @property
    def isolation(self) -> str:
        if not self._level:
            return "no process started"
        return f"private root, {self._level}" if self._isolation.namespaces else self._level

    def _count_printed(self, size_bytes: int) -> None:
        self._printed_bytes += size_bytes

    def take_printed_bytes(self) -> int:
        printed_bytes, self._printed_bytes = self._printed_bytes, 0
        return printed_bytes

    def isolation_warnings(self) -> list[Finding]:
        if not self._level or (self._isolation.namespaces and "namespaces" in self._level):
            return []
        why = f": {self._isolation.weakness}" if self._isolation.weakness else ""
        message = f"the candidate ran with weak isolation (only {self.isolation}){why}"
        return [Finding(check="confinement", severity="warning", message=message)]

    def _describe_isolation(self, folder: str, *, namespaces: bool) -> dict[str, Any]:
        readable = self._list_readable()
        return {
            "scratch": self._place_scratch(folder, readable, namespaces=namespaces),
            "namespaces": namespaces,
            "filters": self._isolation.filters,
            "own_root": self._isolation.namespaces,
            "profiled": self._profiler is not None,
            "readable": readable_paths(readable),
            "devices": device_paths(),
        }

    def _place_scratch(self, folder: str, readable: list[Path], *, namespaces: bool) -> str:
        """Return what each worker mounts over (/tmp, unless files to read are there), or their folders' parent."""
        if not namespaces:
            return "/tmp" if self._isolation.namespaces else folder
        hides = any(path.resolve().is_relative_to("/tmp") for path in readable)
        return folder if hides else "/tmp"

    def _start(self) -> None:
        ours, theirs = make_pair()
        self._folder = tempfile.TemporaryDirectory(prefix="harness-scratch-", ignore_cleanup_errors=True)
        Path(self._folder.name).chmod(0o1733)  # workers, maybe as another user, make folders but list none
        command = [sys.executable, "-m", "harness.worker.forkserver", str(theirs.fileno())]
        if self._profiler is not None:
            command = [*self._profiler.command, *command]
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        readable = [*self._list_readable(), Path(self._folder.name)]
        wrapped = self._isolation.wrap_forkserver(command, readable=readable)
        driver = self._open_driver_library()
        package_root = str(Path(__file__).resolve().parents[2])
        # With NVML torch does not initialise the CUDA driver at import, which would break every forked child.
        nvml = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        own = {"PYTHONPATH": package_root, **nvml, **SHORT_SPINS, **EXPANDABLE_SEGMENTS}
        if driver:
            own[DRIVER_LIBRARY] = f"/proc/self/fd/{driver[0]}"  # a path that needs no access to its folder
        environment = clean_environment(own)
        self._process = subprocess.Popen(
            wrapped, env=environment, pass_fds=(theirs.fileno(), *driver), stdin=subprocess.DEVNULL, cwd="/",
            stdout=subprocess.DEVNULL if self._profiler is None else self._stderr, stderr=self._stderr,
            start_new_session=True,
        )  # fmt: skip
        theirs.close()
        for number in driver:
            os.close(number)
        line = Channel(ours)
        try:
            warm, _ = line.receive(timeout_s=START_TIMEOUT_S)
        except (WorkerLost, WorkerTimeout, WireError) as error:
            line.close()
            self._stop()
            message = f"the forkserver did not start: {error}; it printed: {self._printed[-1500:]}"
            raise HarnessError(message) from error
        # A profiler follows no process into other namespaces.
        namespaces = self._isolation.namespaces and warm.get("namespaces") is True and self._profiler is None
        self._spawn_settings = self._describe_isolation(self._folder.name, namespaces=namespaces)
        self._outer_id = find_innermost(self._process.pid)
        self._line = line

    def _open_driver_library(self) -> list[int]:
        """Return nothing without a GPU, or if the build fails; then `unrecordable` holds the reason."""
        if not Path(NVIDIA_DEVICE).exists():
            return []
        try:
            library = find_driver_library(default_cache_folder())
        except (HarnessError, OSError) as error:
            self.unrecordable = str(error)
            return []
        return [os.open(library, os.O_RDONLY)]

    def _list_readable(self) -> list[Path]:
        readable = [*interpreter_folders(), *worker_package_files()]
        return readable if self._profiler is None else [*readable, *self._profiler.readable]

    def _stop(self, timeout_s: float = END_S) -> None:
        self._pending.clear()
        self._preloaded.clear()
        self._workers.clear()
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._stderr is not None:
            self._stderr.seek(0)
            self._printed = self._stderr.read(MOST_PRINTED).decode(errors="replace")
            self._stderr.close()
            self._stderr = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _find_by_inner_id(parent: int, inner: int) -> int:
    for child in children_of(parent):
        ids = re.search(r"^NSpid:\s+(.+)$", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
        if ids is not None and int(ids[1].split()[-1]) == inner:
            return child
    raise HarnessError(f"worker {inner} is not a child of forkserver {parent}")
