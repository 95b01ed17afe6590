"""Caches the prebuilt parts of the fast strategy.

Each costs about one standard build, so it is made when flags repeat, or at once if many builds are expected. A
`find_` method returns the part, or the reason why it is not available, and runs `beside` meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO

from harness.builder.fast import final_errors, line_markers, prebuilt, stub_headers
from harness.builder.fast.binding import BINDING_SOURCE, OBJECT
from harness.builder.fast.host_binding import HOST_HEADER
from harness.builder.fast.prebuilt import (
    SOURCE,
    UNUSABLE,
    PrebuiltError,
    PrebuiltHeaders,
    PrebuiltMaker,
    read_prebuilt,
    read_steps,
)
from harness.builder.memory_gate import PREBUILT_BYTES, MemoryGate
from harness.builder.runner import Runner
from harness.builder.toolchain import Toolchain
from harness.domain import HarnessError
from harness.domain.build import LOCKED, PRECOMPILING
from harness.domain.files import try_lock

REQUESTS_BEFORE_MADE = 2
MAX_ENTRIES = 8
WIDER_MACROS = "wider_macros.txt"  # of torch/extension.h, but not of the header of host code
READY = "ready"
POLL_S = 0.2
LIMIT_S = 3600.0  # of each command; busy machines take minutes
# Reasons for not using the fast strategy.
NOT_YET = "its headers are precompiled once more builds use these flags"
CANNOT_BE_MADE = "its headers cannot be precompiled here"


class PrebuiltCache:
    """Safe across threads and processes."""

    def __init__(
        self,
        folder: Path,
        toolchain: Toolchain,
        runner: Runner,
        gate: MemoryGate,
        counted: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
    ) -> None:
        """`counted` is entered during PRECOMPILING and while the entry is LOCKED."""
        self._counted = counted
        self._folder = folder
        self._toolchain = toolchain
        self._runner = runner
        self._gate = gate
        self._earlier = 0  # number of requests saved
        self._waits = threading.local()  # their time, by the waiting thread

    def expect_many(self) -> None:
        self._earlier = REQUESTS_BEFORE_MADE

    def take_waited_s(self) -> float:
        """Return how long this thread has waited for parts to be made since the last call."""
        waited_s: float = getattr(self._waits, "time_s", 0.0)
        self._waits.time_s = 0.0
        return waited_s

    def find_cuda_headers(
        self, nvcc: str, flags: str, *, beside: Callable[[], object] = lambda: None
    ) -> PrebuiltHeaders | str:
        folder = self.find(
            "cuda", [nvcc, flags], lambda work: self._make_cuda(work, nvcc, flags), asked=REQUESTS_BEFORE_MADE,
            beside=beside,
        )  # fmt: skip
        return folder if isinstance(folder, str) else read_prebuilt(folder)

    def find_binding(self, compiler: str, flags: str) -> Path | str:
        folder = self.find(
            "binding",
            [compiler, flags, BINDING_SOURCE],
            lambda work: self._make_binding(work, compiler, flags),
            asked=1,
        )
        return folder if isinstance(folder, str) else folder / OBJECT

    def find_precompiled(self, compiler: str, flags: str) -> Path | str:
        """Return a folder with torch/extension.h precompiled. Few sources need it, and it costs more than several
        builds save.
        """
        return self.find(
            "header",
            [compiler, flags],
            lambda work: self._make_header(work, compiler, flags, "#include_next <torch/extension.h>\n"),
            asked=REQUESTS_BEFORE_MADE + 2,
        )

    def find_host_headers(self, compiler: str, flags: str, *, beside: Callable[[], object]) -> Path | str:
        """Return a folder whose torch/extension.h is `HOST_HEADER`, with `WIDER_MACROS`."""
        return self.find(
            "host",
            [compiler, flags, HOST_HEADER],
            lambda work: self._make_host_headers(work, compiler, flags),
            asked=1,
            beside=beside,
        )

    def find_precompiled_host(self, compiler: str, flags: str) -> Path | str:
        """Return a folder with `HOST_HEADER` precompiled as torch/extension.h. It costs as much as four builds save."""
        return self.find(
            "host-header",
            [compiler, flags, HOST_HEADER],
            lambda work: self._make_header(work, compiler, flags, HOST_HEADER),
            asked=REQUESTS_BEFORE_MADE + 4,
        )

    def _key(self, kind: str, parts: list[str]) -> str:
        toolchain = self._toolchain.key_parts(nvcc=kind == "cuda")
        values = {"made_by": _digest_makers(), "parts": parts, "toolchain": toolchain}
        return f"{kind}-{sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:40]}"

    def find(
        self,
        kind: str,
        parts: list[str],
        make: Callable[[Path], None],
        *,
        asked: int,
        beside: Callable[[], object] = lambda: None,
    ) -> Path | str:
        """Return the folder of a part that depends on `parts`, made at the request number `asked`."""
        entry = self._folder / self._key(kind, parts)
        found = self._read(entry)
        if found is not None:
            return found
        if self._count_request(entry) < asked - self._earlier:
            return NOT_YET
        with self._waiting(), self._locked(entry / "lock"):
            if self._read(entry) is None:
                with ThreadPoolExecutor(1) as pool:
                    other = pool.submit(beside)
                    self._make(entry, entry / "headers", make)
                other.result()
            return self._read(entry) or NOT_YET

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        finally:
            self._waits.time_s = getattr(self._waits, "time_s", 0.0) + time.monotonic() - began_s

    def _read(self, entry: Path) -> Path | str | None:
        """Return the entry, the reason why it cannot be made, or None if never tried."""
        if (entry / READY).exists():
            with suppress(OSError):  # of another cache, see `harness.executors.clients.sandbox`
                os.utime(entry)
            return entry / "headers"
        unusable = entry / UNUSABLE
        return f"{CANNOT_BE_MADE} ({unusable}): {unusable.read_text()}" if unusable.exists() else None

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Wait for other processes and threads. Raises HarnessError if builds are stopped."""
        with path.open("w") as lock:
            if not try_lock(lock):
                with self._counted(LOCKED):
                    self._await(lock)
            yield

    def _await(self, lock: IO[str]) -> None:
        while not try_lock(lock):
            self._runner.require_running()
            time.sleep(POLL_S)

    def _count_request(self, entry: Path) -> int:
        entry.mkdir(parents=True, exist_ok=True)
        with (entry / "asked").open("a") as file:
            file.write("x")
        return (entry / "asked").stat().st_size

    def _make(self, entry: Path, work: Path, make: Callable[[Path], None]) -> None:
        shutil.rmtree(work, ignore_errors=True)  # left by a killed process
        work.mkdir(parents=True)
        try:
            with self._counted(PRECOMPILING), self._gate.hold(PREBUILT_BYTES):
                make(work)
        except (PrebuiltError, KeyError, ValueError, OSError) as error:
            shutil.rmtree(work, ignore_errors=True)
            (entry / UNUSABLE).write_text(f"{type(error).__name__}: {error}\n")
            return
        (entry / READY).touch()
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the least recently used; open files stay readable."""
        ready = sorted(self._folder.glob(f"*/{READY}"), key=lambda path: path.parent.stat().st_mtime)
        for marker in ready[:-MAX_ENTRIES]:
            with suppress(OSError):
                marker.unlink()
                shutil.rmtree(marker.parent)

    def _run(self, command: Sequence[str], work: Path) -> tuple[int | None, str]:
        """Raises HarnessError after the limit, which says nothing about the part."""
        returncode, log = self._runner.run(command, work, timeout_s=LIMIT_S)
        if returncode is None:
            raise HarnessError(f"headers were not precompiled within {LIMIT_S:g} s: is this machine very busy?")
        return returncode, log

    def _make_cuda(self, work: Path, nvcc: str, flags: str) -> None:
        import torch

        (work / SOURCE).write_text("")
        command = [nvcc, "--dryrun", *shlex.split(flags), "-c", SOURCE, "-o", "cuda.cuda.o"]
        returncode, log = self._run(command, work)
        if returncode != 0:
            raise PrebuiltError(f"nvcc --dryrun failed:\n{log[-2000:]}")
        include = Path(torch.__file__).absolute().parent / "include"
        PrebuiltMaker(work, read_steps(log), include, self._run).make()

    def _make_binding(self, work: Path, compiler: str, flags: str) -> None:
        (work / "binding.cpp").write_text(BINDING_SOURCE)
        self.compile([*shlex.split(compiler), *shlex.split(flags), "-O2", "-c", "binding.cpp", "-o", OBJECT], work)

    def _make_header(self, work: Path, compiler: str, flags: str, text: str) -> None:
        """Write the header in `text` with the headers that it may include, and precompile it."""
        _write_headers(work, text)
        command = [*shlex.split(compiler), "-I.", *shlex.split(flags)]
        self.compile([*command, "-x", "c++-header", "extension.h", "-o", "torch/extension.h.gch"], work)

    def _make_host_headers(self, work: Path, compiler: str, flags: str) -> None:
        _write_headers(work, HOST_HEADER)
        for name in ("torch.h", "all.h"):
            (work / "torch" / name).write_text("#include <torch/types.h>\n")
        whole, part = (self._list_macros(work, compiler, words) for words in (flags, f"-I. {flags}"))
        (work / WIDER_MACROS).write_text("\n".join(sorted(whole - part)))

    def _list_macros(self, work: Path, compiler: str, flags: str) -> set[str]:
        command = [*shlex.split(compiler), *shlex.split(flags), "-x", "c++", "-dM", "-E", "extension.h", "-o", "macros"]
        self.compile(command, work)
        return set(re.findall(r"^#define (\w+)", (work / "macros").read_text(), re.MULTILINE))

    def compile(self, command: list[str], work: Path) -> None:
        """Raises PrebuiltError."""
        returncode, log = self._run(command, work)
        if returncode != 0:
            raise PrebuiltError(f"{shlex.join(command)[:300]}\nended with {returncode}:\n{log[-4000:]}")


def _write_headers(folder: Path, text: str) -> None:
    (folder / "extension.h").write_text("#include <torch/extension.h>\n")
    (folder / "torch").mkdir()
    (folder / "torch" / "extension.h").write_text(text)


def strip_name(flags: str) -> str:
    return re.sub(r"-DTORCH_EXTENSION_NAME=\S+ ?", "", flags).strip()


@cache
def read_wider_macros(folder: Path) -> frozenset[str]:
    return frozenset((folder / WIDER_MACROS).read_text().split())


@cache
def _digest_makers() -> str:
    files = [__file__, *(module.__file__ or "" for module in (stub_headers, prebuilt, final_errors, line_markers))]
    texts = [Path(file).read_bytes() for file in files]
    return sha256(b"\0".join(texts)).hexdigest()
