"""Keeps what fast builds need once per toolchain and flags: kits for CUDA, the binding object, precompiled headers.

A kit costs about as much as a plain build, so it is made when something is asked for the second time: flags that
occur once never pay for one. One process makes a kit, others build plainly meanwhile. Nothing in it comes from a
candidate but its flags, which are the key.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.build import facade, kit, proof, regions
from harness.build.binding import BINDING_SOURCE, OBJECT
from harness.build.kit import SOURCE, UNUSABLE, Kit, KitError, KitMaker, read_kit, read_steps
from harness.build.runner import Runner
from harness.build.schedule import KIT_BYTES, MemoryGate
from harness.build.toolchain import Toolchain

ASKED_BEFORE_MADE = 2
MAX_KITS = 8
READY = "ready"


class KitShelf:
    """Kits below one folder. Thread-safe and safe between processes."""

    def __init__(self, folder: Path, toolchain: Toolchain, runner: Runner, gate: MemoryGate) -> None:
        self._folder = folder
        self._toolchain = toolchain
        self._runner = runner
        self._gate = gate

    def find_cuda_kit(self, nvcc: str, flags: str) -> Kit | None:
        """The kit for nvcc with these flags, made now where its time has come; None where there is none (yet)."""
        folder = self._find(
            "cuda", [nvcc, flags], lambda work: self._make_cuda(work, nvcc, flags), asked=ASKED_BEFORE_MADE
        )
        return None if folder is None else read_kit(folder)

    def find_binding(self, compiler: str, flags: str) -> Path | None:
        """The object that binds plain functions, see `harness.build.binding`."""
        folder = self._find(
            "binding",
            [compiler, flags, BINDING_SOURCE],
            lambda work: self._make_binding(work, compiler, flags),
            asked=1,
        )
        return None if folder is None else folder / OBJECT

    def find_precompiled(self, compiler: str, flags: str) -> Path | None:
        """A folder to be searched first for headers, with torch/extension.h precompiled under the same flags."""
        return self._find(
            "header",
            [compiler, flags],
            lambda work: self._make_header(work, compiler, flags),
            asked=ASKED_BEFORE_MADE + 1,
        )

    def find_emulator(self, parts: list[str], make: Callable[[Path], None]) -> Path | str | None:
        """The emulator's kit for a compiler and flags, made by `make` when it is asked for first; why it cannot be
        made; or None while another process makes it."""
        found = self._find("emulator", parts, make, asked=1)
        if found is not None:
            return found
        unusable = self._folder / self._key("emulator", parts) / UNUSABLE
        return unusable.read_text() if unusable.exists() else None

    def run_steps(self, command: list[str], work: Path) -> None:
        """For makers of kits. Raises KitError."""
        self._compile(command, work)

    def _key(self, kind: str, parts: list[str]) -> str:
        values = {"made_by": _digest_makers(), "parts": parts, "toolchain": asdict(self._toolchain)}
        return f"{kind}-{sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:40]}"

    def _find(self, kind: str, parts: list[str], make: Callable[[Path], None], *, asked: int) -> Path | None:
        place = self._folder / self._key(kind, parts)
        work = place / "kit"
        if (place / READY).exists():
            os.utime(place)
            return work
        if (place / UNUSABLE).exists() or self._count_request(place) < asked:
            return None
        with _try_lock(place / "lock") as locked:
            if not locked:
                return None
            if not (place / READY).exists():
                self._make(place, work, make)
            return work if (place / READY).exists() else None

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
    files = [__file__, *(module.__file__ or "" for module in (facade, kit, proof, regions))]
    texts = [Path(file).read_bytes() for file in files]
    return sha256(b"\0".join(texts)).hexdigest()


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Whether the lock was free; it is held inside."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
