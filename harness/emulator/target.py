"""The emulated GPU and its limits for launches. Not used for timing.

Source: vendors' datasheets and the table of compute capabilities in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from harness.domain import DeviceError

DEFAULT_TARGET = "A100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One GPU model. `static_shared_bytes_per_block` is the limit without opt-in."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    total_memory_bytes: int
    l2_bytes: int
    max_shared_bytes_per_block: int
    shared_bytes_per_multiprocessor: int
    max_threads_per_multiprocessor: int
    max_blocks_per_multiprocessor: int
    clock_khz: int
    static_shared_bytes_per_block: int = 48 * 1024
    warp_size: int = 32
    max_threads_per_block: int = 1024
    registers_per_block: int = 65536
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)

    @property
    def architecture(self) -> str:
        """As in TORCH_CUDA_ARCH_LIST."""
        major, minor = self.compute_capability
        return f"{major}.{minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """`checked`: the built library also checks memory accesses and synchronisation."""

    target: Target
    checked: bool = False


# compute capability: KiB of shared memory per multiprocessor and per block; threads; blocks
_CAPABILITIES = {
    (7, 0): (96, 96, 2048, 32),
    (7, 5): (64, 64, 1024, 16),
    (8, 0): (164, 163, 2048, 32),
    (8, 6): (100, 99, 1536, 16),
    (8, 9): (100, 99, 1536, 24),
    (9, 0): (228, 227, 2048, 32),
    (10, 0): (228, 227, 2048, 32),
}
# name, compute capability, multiprocessors, GB of memory, MiB of L2 cache, MHz
_ROWS = (
    ("V100", (7, 0), 80, 32, 6, 1530),
    ("T4", (7, 5), 40, 16, 4, 1590),
    ("A10", (8, 6), 72, 24, 6, 1695),
    ("A100", (8, 0), 108, 80, 40, 1410),
    ("L4", (8, 9), 58, 24, 48, 2040),
    ("L40S", (8, 9), 142, 48, 96, 2520),
    ("RTX 3090", (8, 6), 82, 24, 6, 1695),
    ("RTX 4090", (8, 9), 128, 24, 72, 2520),
    ("H100", (9, 0), 132, 80, 50, 1980),
    ("H200", (9, 0), 132, 141, 50, 1980),
    ("B200", (10, 0), 148, 180, 126, 1965),
)
TARGETS: tuple[Target, ...] = tuple(
    Target(
        name=name,
        compute_capability=capability,
        multiprocessors=multiprocessors,
        total_memory_bytes=memory_gb * 10**9,
        l2_bytes=l2_mib * 2**20,
        shared_bytes_per_multiprocessor=_CAPABILITIES[capability][0] * 1024,
        max_shared_bytes_per_block=_CAPABILITIES[capability][1] * 1024,
        max_threads_per_multiprocessor=_CAPABILITIES[capability][2],
        max_blocks_per_multiprocessor=_CAPABILITIES[capability][3],
        clock_khz=clock_mhz * 1000,
    )
    for name, capability, multiprocessors, memory_gb, l2_mib, clock_mhz in _ROWS
)


def find_target(name: str = DEFAULT_TARGET) -> Target:
    """Ignores case and punctuation. Raises DeviceError."""
    known = {_squeeze(target.name): target for target in TARGETS}
    if _squeeze(name) in known:
        return known[_squeeze(name)]
    near = get_close_matches(_squeeze(name), known, n=1, cutoff=0.4)
    hint = f"did you mean {known[near[0]].name}? " if near else ""
    raise DeviceError(
        f"no GPU called {name!r} can be emulated: {hint}Known: {', '.join(target.name for target in TARGETS)}"
    )


def _squeeze(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
