"""Facts about a GPU for prompts. Nothing is measured here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.hardware.gpus import GpuModel, find_gpu_model, match_gpu_model

_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU as prompt templates see it. `arch` is the compute capability; unknown rates are None. GB and GB/s are
    powers of ten, KB of shared memory are KiB, as in the datasheets.
    """

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


def find_gpu(name: str) -> GpuFacts:
    """Raises UsageError with the nearest name."""
    return _describe(find_gpu_model(name))


def _describe(model: GpuModel) -> GpuFacts:
    return GpuFacts(
        name=model.name,
        arch=model.architecture,
        memory_gb=model.total_memory_bytes // 10**9,
        sms=model.multiprocessors,
        shared_per_sm_kb=model.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=model.max_shared_bytes_per_block // 1024,
        l2_mb=model.l2_bytes // 2**20,
        bandwidth_gb_s=model.bandwidth_gb_s,
        fp32_tflops=model.fp32_tflops,
        tf32_tflops=model.tf32_tflops,
        bf16_tflops=model.bf16_tflops,
    )


def read_gpu_facts() -> GpuFacts | None:
    """This machine's first GPU. Imports torch, which takes seconds, only where a driver is loaded."""
    if not _DRIVER.exists():
        return None
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    properties: Any = torch.cuda.get_device_properties(0)  # torch's stubs list different fields in each version
    model = match_gpu_model(properties.name)
    return GpuFacts(
        name=properties.name,
        arch=f"{properties.major}.{properties.minor}",
        memory_gb=round(properties.total_memory / 1e9),
        sms=properties.multi_processor_count,
        shared_per_sm_kb=properties.shared_memory_per_multiprocessor // 1024,
        shared_per_block_kb=properties.shared_memory_per_block_optin // 1024,
        l2_mb=round(properties.L2_cache_size / 2**20),
        bandwidth_gb_s=model.bandwidth_gb_s if model else None,
        fp32_tflops=model.fp32_tflops if model else None,
        tf32_tflops=model.tf32_tflops if model else None,
        bf16_tflops=model.bf16_tflops if model else None,
    )
