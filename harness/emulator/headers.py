"""Where the runtime's C++ headers lie, their digest, and the one file of them that depends on the target."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.emulator.target import Emulation

ROOM = Path(__file__).resolve().parent
RUNTIME = ROOM / "runtime"


@cache
def digest_runtime() -> str:
    """Of the headers and of the emulator's own code: what is compiled once for all candidates depends on these."""
    return _digest(RUNTIME)


@cache
def digest_room() -> str:
    """Of everything here that a built library depends on besides its request: `runtime`, and the code that rewrites."""
    return _digest(ROOM)


def _digest(folder: Path) -> str:
    digest = sha256()
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def list_headers() -> frozenset[str]:
    """The names under which candidates may include what stands for CUDA's headers and torch's CUDA headers."""
    return frozenset(
        str(path.relative_to(RUNTIME)) for path in RUNTIME.rglob("*") if path.is_file() and path.suffix != ".cpp"
    )


def write_target(emulation: Emulation) -> str:
    """The definition of the target that the runtime declares in emulator/target.h, in that order of members."""
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
