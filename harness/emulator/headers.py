"""The emulated GPU: the runtime's C++ headers, and the generated definition of the target. Not used for timing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.hardware.gpus import GpuModel
from harness.syntax import cpp


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    target: GpuModel
    checked: bool = False


ROOM = Path(__file__).resolve().parent
RUNTIME = ROOM / "runtime"


@cache
def digest_runtime() -> str:
    return _digest(RUNTIME)


@cache
def digest_emulator() -> str:
    return _digest(ROOM) + sha256(Path(cpp.__file__).read_bytes()).hexdigest()


def _digest(folder: Path) -> str:
    digest = sha256()
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def list_headers() -> frozenset[str]:
    return frozenset(
        str(path.relative_to(RUNTIME)) for path in RUNTIME.rglob("*") if path.is_file() and path.suffix != ".cpp"
    )


def write_target(emulation: Emulation) -> str:
    target = emulation.target
    values = [
        f'"{target.name}"',
        *target.compute_capability,
        target.warp_size,
        target.max_threads_per_block,
        *target.max_block,
        *target.max_grid,
        target.multiprocessors,
        target.max_threads_per_multiprocessor,
        target.max_blocks_per_multiprocessor,
        target.static_shared_bytes_per_block,
        target.max_shared_bytes_per_block,
        target.shared_bytes_per_multiprocessor,
        target.registers_per_block,
        f"{target.total_memory_bytes}ull",
        target.l2_bytes,
        target.clock_khz,
    ]
    text = (RUNTIME / "emulator" / "target.h").read_text(encoding="utf-8").replace("#pragma once", "")
    return f"{text}\nconst harness_emulator::Target harness_emulator_target = {{{', '.join(map(str, values))}}};\n"
