"""What a prompt may say about a GPU. Facts for prompts only: nothing here is measured, and nothing is judged by it.

The table holds the numbers of the vendor's datasheets and architecture papers (NVIDIA A100, H100, H200, B200 (HGX), L4,
L40S datasheets; the Ada and Blackwell architecture papers; the CUDA C++ Programming Guide's table of compute
capabilities for shared memory): SXM variants where there are several, dense rates (without sparsity), base
units as printed there: GB and GB/s are powers of ten, KB of shared memory are KiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.domain import UsageError
from harness.emulator import Target, find_target

_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU model. `arch` is its compute capability. Rates are None where they are not known."""

    name: str
    arch: str
    memory_gb: float
    sms: int
    shared_per_sm_kb: int
    shared_per_block_kb: int
    l2_mb: float
    bandwidth_gb_s: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    bf16_tflops: float | None = None


# name, bandwidth GB/s, TFLOPS of float32, TF32 and bfloat16
_ROWS = (
    ("A100", 2039, 19.5, 156, 312),
    ("H100", 3350, 67, 495, 989),
    ("H200", 4800, 67, 495, 989),
    ("L4", 300, 30.3, 60, 121),
    ("L40S", 864, 91.6, 183, 362),
    ("RTX 4090", 1008, 82.6, 82.6, 165),
    ("B200", 8000, 75, 1100, 2250),
)


def _describe(target: Target, bandwidth: float, fp32: float, tf32: float, bf16: float) -> GpuFacts:
    return GpuFacts(
        name=target.name,
        arch=target.architecture,
        memory_gb=target.total_memory_bytes // 10**9,
        sms=target.multiprocessors,
        shared_per_sm_kb=target.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=target.max_shared_bytes_per_block // 1024,
        l2_mb=target.l2_bytes // 2**20,
        bandwidth_gb_s=bandwidth,
        fp32_tflops=fp32,
        tf32_tflops=tf32,
        bf16_tflops=bf16,
    )


GPU_TABLE: tuple[GpuFacts, ...] = tuple(
    _describe(find_target(name), bandwidth, fp32, tf32, bf16) for name, bandwidth, fp32, tf32, bf16 in _ROWS
)


def find_gpu(name: str) -> GpuFacts:
    """The GPU of that name, written in any way ("rtx4090", "RTX 4090"). Unknown: UsageError with the nearest."""
    known = {_squeeze(facts.name): facts for facts in GPU_TABLE}
    if _squeeze(name) in known:
        return known[_squeeze(name)]
    near = get_close_matches(_squeeze(name), known, n=1, cutoff=0.4)
    hint = f"did you mean {known[near[0]].name}? " if near else ""
    raise UsageError(f"no facts about a GPU called {name!r}: {hint}Known: {', '.join(gpu.name for gpu in GPU_TABLE)}")


def read_gpu_facts() -> GpuFacts | None:
    """This machine's first GPU, or None. Imports torch only where a driver is loaded, since that takes seconds."""
    if not _DRIVER.exists():
        return None
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    properties: Any = torch.cuda.get_device_properties(0)  # what its stubs list differs between versions of torch
    listed = next((gpu for gpu in reversed(GPU_TABLE) if _squeeze(gpu.name) in _squeeze(properties.name)), None)
    return GpuFacts(
        name=properties.name,
        arch=f"{properties.major}.{properties.minor}",
        memory_gb=round(properties.total_memory / 1e9),
        sms=properties.multi_processor_count,
        shared_per_sm_kb=properties.shared_memory_per_multiprocessor // 1024,
        shared_per_block_kb=properties.shared_memory_per_block_optin // 1024,
        l2_mb=round(properties.L2_cache_size / 2**20),
        bandwidth_gb_s=listed.bandwidth_gb_s if listed else None,
        fp32_tflops=listed.fp32_tflops if listed else None,
        tf32_tflops=listed.tf32_tflops if listed else None,
        bf16_tflops=listed.bf16_tflops if listed else None,
    )


def _squeeze(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
