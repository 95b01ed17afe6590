"""From a build request to a shared library: refuse, look up, compile confined, keep.

The cache is addressed by content: the key covers the request, the compilers, torch and the architecture, and is made
here, so that no candidate can choose it. Failed builds are kept as well; time-outs and missing tools are not.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from harness.build.flags import refuse_flags
from harness.build.plan import write_plan
from harness.build.toolchain import Toolchain, ninja_program
from harness.domain import BuildRequest, BuildResult, BuildToolError, HarnessError

MAX_LOG_CHARACTERS = 400_000
COMPILER_MEMORY_KIB = 12 << 20
# A whole line of the compiler's own: what is quoted from a source stands behind its place.
_KILLED = re.compile(
    r"^\S+: fatal error: Killed signal terminated program \w+$|^nvcc error +: '\w+' died due to signal 9\b",
    re.MULTILINE,
)
LIBRARY, LOG = "library.so", "log.txt"


class Wrap(Protocol):
    """Puts a command behind walls: see `harness.judge.confinement.Confinement.wrap`."""

    def __call__(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path]) -> list[str]: ...


def default_cache_folder() -> Path:
    """Where libraries are kept between runs: below XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harness" / "builds"


def find_machine_folder(cache: Path | None) -> Path:
    """Where what was measured of this machine is kept: beside the libraries, in the given cache or the default one."""
    return (cache or default_cache_folder()) / "machine"


class Builder:
    """Thread-safe and safe between processes: identical requests that arrive together are built once."""

    def __init__(
        self,
        *,
        cache: Path,
        toolchain: Toolchain,
        wrap: Wrap,
        readable: Iterable[Path] = (),
        environment: Callable[[], dict[str, str]],
        timeout_s: float = 600.0,
    ) -> None:
        self._cache = cache
        self.toolchain = toolchain
        self._wrap = wrap
        self._readable = tuple(readable)
        self._environment = environment
        self._timeout_s = timeout_s
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def stop(self) -> None:
        """Ends every build under way, from any thread; later ones are refused. What is in the cache stays."""
        self._stopped = True
        for process in list(self._running):
            _end(process)

    def build(self, request: BuildRequest) -> BuildResult:
        """The library for a request, from the cache or compiled now.

        Raises BuildToolError when this machine lacks what the build needs, HarnessError when the cache cannot be
        written: neither is a verdict on the request.
        """
        began_s = time.monotonic()
        key = self.key(request)
        refusal = refuse_flags(request)
        if refusal is not None:
            return BuildResult(key=key, status="refused", library=None, log=refusal, duration_s=0.0)
        if not (request.name.isidentifier() and request.name.isascii()):
            log = f"error: the extension's name {request.name!r} is not an identifier, which its module must have"
            return BuildResult(key=key, status="failed", library=None, log=log, duration_s=0.0)
        self._require_tools(request)
        try:
            with self._locked(key):
                kept = self._look_up(key, began_s)
                return kept or self._compile(request, key, began_s)
        except OSError as error:
            raise HarnessError(
                f"cannot build in the cache {self._cache}: {error}; make room there, or choose another folder with "
                "--cache-dir. What was built before is still there"
            ) from error

    def key(self, request: BuildRequest) -> str:
        """Names a build by everything that goes into it."""
        toolchain = asdict(self.toolchain)
        if not request.needs_cuda:
            del toolchain["packaged_cuda_headers"]
        parts = {"format": 1, "request": asdict(request), "toolchain": toolchain}
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _require_tools(self, request: BuildRequest) -> None:
        if self.toolchain.compiler_version is None:
            raise BuildToolError("no C++ compiler was found; install one (for example the package g++) or set CXX")
        if request.needs_cuda and not self.toolchain.can_build_cuda:
            lacks = "nvcc" if self.toolchain.nvcc_version is None else "a CUDA build of torch"
            raise BuildToolError(f"a CUDA extension needs nvcc and a CUDA build of torch; this machine lacks {lacks}")

    def _folder(self, key: str) -> Path:
        return self._cache / key[:2] / key

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        locks = self._cache / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / key).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _look_up(self, key: str, began_s: float) -> BuildResult | None:
        folder = self._folder(key)
        if not folder.exists():
            return None
        os.utime(folder)
        library = folder / LIBRARY
        found = library.exists()
        return BuildResult(
            key=key,
            status="cached" if found else "failed",
            library=str(library) if found else None,
            log=(folder / LOG).read_text(encoding="utf-8"),
            duration_s=time.monotonic() - began_s,
        )

    def _compile(self, request: BuildRequest, key: str, began_s: float) -> BuildResult:
        with tempfile.TemporaryDirectory(prefix="build-", dir=self._cache, ignore_cleanup_errors=True) as name:
            work = Path(name) / "work"
            work.mkdir()
            write_plan(request, work, self.toolchain.architecture)
            returncode, log = self._run_ninja(work)
            if returncode is None:
                log += f"\nbuild stopped after {self._timeout_s:g} s"
                return BuildResult(
                    key=key, status="timeout", library=None, log=log, duration_s=time.monotonic() - began_s
                )
            if returncode != 0 and _KILLED.search(log):
                raise HarnessError(
                    f"the compiler of {request.name} was killed, most likely because this machine's memory ran out: "
                    "build fewer at a time (--jobs), and run the same command again"
                )
            built = work / f"{request.name}.so"
            library = self._keep(key, Path(name), built if returncode == 0 else None, log)
        return BuildResult(
            key=key,
            status="failed" if library is None else "built",
            library=None if library is None else str(library),
            log=log,
            duration_s=time.monotonic() - began_s,
        )

    def _run_ninja(self, work: Path) -> tuple[int | None, str]:
        """Exit code (None: past the time limit, the whole compiler tree killed) and output."""
        limited = ["/bin/sh", "-c", f'ulimit -v {COMPILER_MEMORY_KIB}; exec "$@"', "sh"]
        command = [*limited, ninja_program(), "-v", "-j", "2"]
        readable = [*self._readable, Path(ninja_program()).resolve().parent]
        wrapped = self._wrap(command, readable=readable, writable=[work])
        with (work.parent / "output").open("w+b") as output:
            process = subprocess.Popen(
                wrapped, cwd=work, env=self._compiler_environment(), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            returncode = self._wait(process)
            output.seek(0)
            text = output.read(MAX_LOG_CHARACTERS).decode(errors="replace")
        return returncode, text

    def _compiler_environment(self) -> dict[str, str]:
        """The packaged headers come after those of every flag: they only fill gaps."""
        environment = self._environment()
        headers = self.toolchain.packaged_cuda_headers
        return {**environment, "CPLUS_INCLUDE_PATH": ":".join(headers)} if headers else environment

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        self._running.add(process)
        try:
            if self._stopped:
                _end(process)
            returncode = process.wait(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            _end(process)
            process.wait()
            self._running.discard(process)
        if self._stopped:
            raise HarnessError("the build was stopped because the harness is ending")
        return returncode

    def _keep(self, key: str, work: Path, built: Path | None, log: str) -> Path | None:
        """Moves a finished build into the cache in one step: a half-written one is never seen."""
        finished = work / "finished"
        finished.mkdir()
        (finished / LOG).write_text(log, encoding="utf-8")
        if built is not None:
            shutil.move(built, finished / LIBRARY)
        folder = self._folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        finished.rename(folder)
        return folder / LIBRARY if built is not None else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a build with its whole session: ninja puts every compiler into a process group of its own.

    Looks again until nobody is left, since a process may have started another meanwhile.
    """
    while members := _find_session(process.pid):
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(0.01)


def _find_session(leader: int) -> list[int]:
    """The running processes of a session, as /proc has them now; those that have ended and wait to be read are not."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    members.append(int(entry.name))
    return members
