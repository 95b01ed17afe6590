"""Caches the prebuilt parts of the fast strategy.

A `find_` method returns the part, or why there is none. Parts of every build are made at the first request, which
waits; precompiled headers when requests repeat, without a wait.
"""

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

from harness.builder.cache import READY
from harness.builder.fast import final_errors, line_markers, operators, prebuilt, stub_headers
from harness.builder.fast.binding import BINDING_SOURCE, OBJECT
from harness.builder.fast.host_binding import HOST_HEADER
from harness.builder.fast.prebuilt import (
    SOURCE,
    UNUSABLE,
    WORDS,
    AddedHeader,
    PrebuiltError,
    PrebuiltHeaders,
    PrebuiltMaker,
    precompile,
    read_added,
    read_prebuilt,
    read_steps,
    run_or_raise,
)
from harness.builder.runner import PREBUILT_BYTES, MemoryGate, Runner
from harness.builder.toolchain import Toolchain
from harness.domain import HarnessError
from harness.domain.build import LOCKED, PRECOMPILING
from harness.domain.files import try_lock

REQUESTS_BEFORE_PRECOMPILED = 4  # a header costs as much as three or four builds save
MAX_ENTRIES = 16
WIDER_MACROS = "wider_macros.txt"  # of torch/extension.h, but not of the header of host code
LOCK = "lock"
POLL_S = 0.2
LIMIT_S = 3600.0  # of each command; busy machines take minutes
# Reasons for not using the fast strategy.
NOT_YET = "its headers are not precompiled yet"
CANNOT_BE_MADE = "its headers cannot be precompiled here"
Make = Callable[[Path], None]


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
        self._waits = threading.local()  # their time, by the waiting thread

    def take_waited_s(self) -> float:
        """Return how long this thread has waited for parts to be made since the last call."""
        waited_s: float = getattr(self._waits, "time_s", 0.0)
        self._waits.time_s = 0.0
        return waited_s

    def find_cuda_headers(
        self, nvcc: str, flags: str, *, beside: Callable[[], object] = lambda: None
    ) -> PrebuiltHeaders | str:
        folder = self.find("cuda", [nvcc, flags], lambda work: self._make_cuda(work, nvcc, flags), beside=beside)
        return folder if isinstance(folder, str) else read_prebuilt(folder)

    def find_added_header(self, base: PrebuiltHeaders, header: str) -> AddedHeader | str:
        parts = [base.folder.parent.name, header]
        folder = self.find("cuda-added", parts, lambda work: self._maker(work, base).make_added(base, header))
        return folder if isinstance(folder, str) else read_added(folder)

    def find_words(self, base: PrebuiltHeaders) -> tuple[frozenset[str], frozenset[str]] | str:
        """Return words and macros of the headers of every CUDA source."""
        folder = self.find("cuda-words", [base.folder.parent.name], lambda work: self._maker(work, base).make_words())
        if isinstance(folder, str):
            return folder
        found = json.loads((folder / WORDS).read_text())
        return frozenset(found["words"]), frozenset(found["macros"])

    def find_precompiled_cuda(self, base: PrebuiltHeaders) -> Path:
        """Return a folder with the headers' text, precompiled if that is ready."""
        parts = [base.folder.parent.name]
        folder = self.find_later("cuda-header", parts, lambda work: precompile(base, work, self._run))
        return base.folder if isinstance(folder, str) else folder

    def find_binding(self, compiler: str, flags: str) -> Path | str:
        folder = self.find(
            "binding", [compiler, flags, BINDING_SOURCE], lambda work: self._make_binding(work, compiler, flags)
        )
        return folder if isinstance(folder, str) else folder / OBJECT

    def find_precompiled(self, compiler: str, flags: str) -> Path | str:
        """Return a folder with torch/extension.h precompiled. Few sources need it."""
        return self.find_later(
            "header",
            [compiler, flags],
            lambda work: self._make_header(work, compiler, flags, "#include_next <torch/extension.h>\n"),
        )

    def find_host_headers(self, compiler: str, flags: str, *, beside: Callable[[], object]) -> Path | str:
        """Return a folder whose torch/extension.h is `HOST_HEADER`, with `WIDER_MACROS` and lists of no operators."""
        return self.find(
            "host",
            [compiler, flags, HOST_HEADER],
            lambda work: self._make_host_headers(work, compiler, flags),
            beside=beside,
        )

    def find_precompiled_host(self, compiler: str, flags: str) -> Path | str:
        """Return a folder with `HOST_HEADER` precompiled as torch/extension.h."""
        return self.find_later(
            "host-header",
            [compiler, flags, HOST_HEADER],
            lambda work: self._make_header(work, compiler, flags, HOST_HEADER),
        )

    def _key(self, kind: str, parts: list[str]) -> str:
        toolchain = self._toolchain.key_parts(nvcc=kind == "cuda")
        values = {"made_by": _digest_makers(), "parts": parts, "toolchain": toolchain}
        return f"{kind}-{sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:40]}"

    def find(
        self, kind: str, parts: list[str], make: Make, *, beside: Callable[[], object] = lambda: None
    ) -> Path | str:
        """Return the folder of a part that depends on `parts`, made at the first request."""
        entry = self._folder / self._key(kind, parts)
        found = self._read(entry)
        if found is not None:
            return found
        entry.mkdir(parents=True, exist_ok=True)
        with self._waiting(), self.locked(entry / LOCK):
            if self._read(entry) is None:
                with self._counted(PRECOMPILING), ThreadPoolExecutor(1) as pool:
                    other = pool.submit(beside)
                    self._make(entry, entry / "headers", make)
                other.result()
            return self._read(entry) or NOT_YET

    def find_later(self, kind: str, parts: list[str], make: Make) -> Path | str:
        """Return the folder of a part, which a thread makes from a certain number of requests on."""
        entry = self._folder / self._key(kind, parts)
        found = self._read(entry)
        if found is not None:
            return found
        entry.mkdir(parents=True, exist_ok=True)
        if self._count_request(entry) >= REQUESTS_BEFORE_PRECOMPILED:
            threading.Thread(target=self._make_beside, args=(entry, make), name=f"make {kind}", daemon=True).start()
        return NOT_YET

    def _make_beside(self, entry: Path, make: Make) -> None:
        with suppress(HarnessError, OSError), (entry / LOCK).open("w") as lock:  # stopped, or removed
            if try_lock(lock) and self._read(entry) is None:
                self._make(entry, entry / "headers", make)

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
            with suppress(OSError):  # of another cache, see `harness.executors.clients`
                os.utime(entry)
            return entry / "headers"
        unusable = entry / UNUSABLE
        return f"{CANNOT_BE_MADE} ({unusable}): {unusable.read_text()}" if unusable.exists() else None

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        """Wait for other processes and threads. Raises HarnessError if builds are stopped."""
        with path.open("w") as lock:
            if not try_lock(lock):
                with self._counted(LOCKED):
                    while not try_lock(lock):
                        self._runner.require_running()
                        time.sleep(POLL_S)
            yield

    def _count_request(self, entry: Path) -> int:
        with (entry / "asked").open("a") as file:
            file.write("x")
        return (entry / "asked").stat().st_size

    def _make(self, entry: Path, work: Path, make: Make) -> None:
        shutil.rmtree(work, ignore_errors=True)  # left by a killed process
        work.mkdir(parents=True)
        try:
            with self._gate.hold(PREBUILT_BYTES):
                make(work)
        except (PrebuiltError, KeyError, ValueError, OSError) as error:
            shutil.rmtree(work, ignore_errors=True)
            (entry / UNUSABLE).write_text(f"{type(error).__name__}: {error}\n")
            return
        (entry / READY).touch()
        # Remove the least recently used; open files stay readable.
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
        (work / SOURCE).write_text("")
        command = [nvcc, "--dryrun", *shlex.split(flags), "-c", SOURCE, "-o", "cuda.cuda.o"]
        steps = read_steps(run_or_raise(self._run, command, work))
        PrebuiltMaker(work, steps, operators.find_torch_headers(), self._run).make()

    def _maker(self, work: Path, base: PrebuiltHeaders) -> PrebuiltMaker:
        return PrebuiltMaker(work, base.steps, base.include, self._run)

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
        operators.write_narrow_lists(work)
        whole, part = (self._list_macros(work, compiler, words) for words in (flags, f"-I. {flags}"))
        (work / WIDER_MACROS).write_text("\n".join(sorted(whole - part)))

    def _list_macros(self, work: Path, compiler: str, flags: str) -> set[str]:
        command = [*shlex.split(compiler), *shlex.split(flags), "-x", "c++", "-dM", "-E", "extension.h", "-o", "macros"]
        self.compile(command, work)
        return set(re.findall(r"^#define (\w+)", (work / "macros").read_text(), re.MULTILINE))

    def compile(self, command: list[str], work: Path) -> None:
        """Raises PrebuiltError."""
        run_or_raise(self._run, command, work)


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
    files = [
        __file__,
        *(module.__file__ or "" for module in (stub_headers, prebuilt, final_errors, line_markers, operators)),
    ]
    texts = [Path(file).read_bytes() for file in files]
    return sha256(b"\0".join(texts)).hexdigest()
