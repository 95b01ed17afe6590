"""Keeps what fast builds need once per toolchain and flags: kits for CUDA, the binding object, precompiled headers.

A kit costs about as much as a plain build. So a single request builds plainly, and the kit is made when its flags are
asked for again; where many builds are to come, the first one makes it. One process makes a kit, and all others wait for
it, which is shorter than a plain build beside many others. Nothing in it comes from a candidate but its flags, which
are the key.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO

from harness.builder.fast import final_errors, line_markers, prebuilt, stub_headers
from harness.builder.fast.binding import BINDING_SOURCE, OBJECT
from harness.builder.fast.prebuilt import SOURCE, UNUSABLE, Kit, KitError, KitMaker, read_kit, read_steps
from harness.builder.memory_gate import KIT_BYTES, MemoryGate
from harness.builder.runner import Runner
from harness.builder.toolchain import Toolchain

ASKED_BEFORE_MADE = 2
MAX_KITS = 8
READY = "ready"
LOOK_AGAIN_S = 0.2
# Why a request has no kit.
NOT_YET = "its kit is made when more is built with these flags"
CANNOT_BE_MADE = "its kit cannot be made here"


class KitShelf:
    """Kits below one folder. Thread-safe and safe between processes."""

    def __init__(self, folder: Path, toolchain: Toolchain, runner: Runner, gate: MemoryGate) -> None:
        self._folder = folder
        self._toolchain = toolchain
        self._runner = runner
        self._gate = gate
        self._earlier = 0  # by so many requests

    def expect_many(self, *, at_once: bool) -> None:
        """From now on a kit is made one request earlier, a CUDA kit by the first; or `at_once`, any by the first."""
        self._earlier = ASKED_BEFORE_MADE if at_once else 1

    def find_cuda_kit(self, nvcc: str, flags: str, *, beside: Callable[[], object] = lambda: None) -> Kit | str:
        """The kit for nvcc with these flags, made now where its time has come, or why there is none.

        While it is made `beside` runs, too: the machine has time for something else that will be needed.
        """
        folder = self._find(
            "cuda", [nvcc, flags], lambda work: self._make_cuda(work, nvcc, flags), asked=ASKED_BEFORE_MADE,
            beside=beside,
        )  # fmt: skip
        return folder if isinstance(folder, str) else read_kit(folder)

    def find_binding(self, compiler: str, flags: str) -> Path | str:
        """The object that binds plain functions, see `harness.builder.fast.binding`, or why there is none."""
        folder = self._find(
            "binding",
            [compiler, flags, BINDING_SOURCE],
            lambda work: self._make_binding(work, compiler, flags),
            asked=1,
        )
        return folder if isinstance(folder, str) else folder / OBJECT

    def find_precompiled(self, compiler: str, flags: str) -> Path | str:
        """A folder to be searched first for headers, with torch/extension.h precompiled under the same flags, or why
        there is none."""
        return self._find(
            "header",
            [compiler, flags],
            lambda work: self._make_header(work, compiler, flags),
            asked=ASKED_BEFORE_MADE + 1,
        )

    def find_emulator(self, parts: list[str], make: Callable[[Path], None]) -> Path | str:
        """The emulator's kit for a compiler and flags, made by `make` when it is asked for first, or why it cannot be
        made."""
        return self._find("emulator", parts, make, asked=1)

    def run_steps(self, command: list[str], work: Path) -> None:
        """For makers of kits. Raises KitError."""
        self._compile(command, work)

    def _key(self, kind: str, parts: list[str]) -> str:
        values = {"made_by": _digest_makers(), "parts": parts, "toolchain": asdict(self._toolchain)}
        return f"{kind}-{sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:40]}"

    def _find(
        self,
        kind: str,
        parts: list[str],
        make: Callable[[Path], None],
        *,
        asked: int,
        beside: Callable[[], object] = lambda: None,
    ) -> Path | str:
        place = self._folder / self._key(kind, parts)
        found = self._read(place)
        if found is not None:
            return found
        if self._count_request(place) < asked - self._earlier:
            return NOT_YET
        with self._locked(place / "lock"):
            if self._read(place) is None:
                with ThreadPoolExecutor(1) as pool:
                    other = pool.submit(beside)
                    self._make(place, place / "kit", make)
                other.result()
            return self._read(place) or NOT_YET

    def _read(self, place: Path) -> Path | str | None:
        """A kit, why it cannot be made, or None where nobody has tried."""
        if (place / READY).exists():
            os.utime(place)
            return place / "kit"
        unusable = place / UNUSABLE
        return f"{CANNOT_BE_MADE} ({unusable}): {unusable.read_text()}" if unusable.exists() else None

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Waits while another process or thread makes this kit. Raises HarnessError if builds are stopped meanwhile."""
        with path.open("w") as lock:
            while not _try_lock(lock):
                self._runner.require_running()
                time.sleep(LOOK_AGAIN_S)
            yield

    def _count_request(self, place: Path) -> int:
        place.mkdir(parents=True, exist_ok=True)
        with (place / "asked").open("a") as file:
            file.write("x")
        return (place / "asked").stat().st_size

    def _make(self, place: Path, work: Path, make: Callable[[Path], None]) -> None:
        shutil.rmtree(work, ignore_errors=True)  # what a maker that was killed has left
        work.mkdir(parents=True)
        try:
            with self._gate.hold(KIT_BYTES):
                make(work)
        except (KitError, KeyError, ValueError, OSError) as error:
            shutil.rmtree(work, ignore_errors=True)
            (place / UNUSABLE).write_text(f"{type(error).__name__}: {error}\n")
            return
        (place / READY).touch()
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Keeps the kits that were used last; one that is being used stays on the disk until its files are closed."""
        ready = sorted(self._folder.glob(f"*/{READY}"), key=lambda path: path.parent.stat().st_mtime)
        for marker in ready[:-MAX_KITS]:
            with suppress(OSError):
                marker.unlink()
                shutil.rmtree(marker.parent)

    def _run(self, command: Sequence[str], work: Path) -> tuple[int | None, str]:
        return self._runner.run(command, work)

    def _make_cuda(self, work: Path, nvcc: str, flags: str) -> None:
        import torch

        (work / SOURCE).write_text("")
        command = [nvcc, "--dryrun", *shlex.split(flags), "-c", SOURCE, "-o", "cuda.cuda.o"]
        returncode, log = self._run(command, work)
        if returncode != 0:
            raise KitError(f"nvcc does not say what it would do:\n{log[-2000:]}")
        include = Path(torch.__file__).absolute().parent / "include"
        KitMaker(work, read_steps(log), include, self._run).make()

    def _make_binding(self, work: Path, compiler: str, flags: str) -> None:
        (work / "binding.cpp").write_text(BINDING_SOURCE)
        self._compile([*shlex.split(compiler), *shlex.split(flags), "-O2", "-c", "binding.cpp", "-o", OBJECT], work)

    def _make_header(self, work: Path, compiler: str, flags: str) -> None:
        (work / "extension.h").write_text("#include <torch/extension.h>\n")
        (work / "torch").mkdir()
        # Only the first header of a file can come precompiled: a source that includes it again finds torch's own here.
        (work / "torch" / "extension.h").write_text("#include_next <torch/extension.h>\n")
        words = [*shlex.split(compiler), *shlex.split(flags)]
        self._compile([*words, "-x", "c++-header", "extension.h", "-o", "torch/extension.h.gch"], work)

    def _compile(self, command: list[str], work: Path) -> None:
        returncode, log = self._run(command, work)
        if returncode != 0:
            raise KitError(f"{shlex.join(command)[:300]}\nended with {returncode}:\n{log[-4000:]}")


def strip_name(flags: str) -> str:
    """Compiler flags without the extension's name, which is another one for each candidate."""
    return re.sub(r"-DTORCH_EXTENSION_NAME=\S+ ?", "", flags).strip()


@cache
def _digest_makers() -> str:
    """A kit that older code made is not used."""
    files = [__file__, *(module.__file__ or "" for module in (stub_headers, prebuilt, final_errors, line_markers))]
    texts = [Path(file).read_bytes() for file in files]
    return sha256(b"\0".join(texts)).hexdigest()


def _try_lock(lock: IO[str]) -> bool:
    """It is held until the file is closed."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
