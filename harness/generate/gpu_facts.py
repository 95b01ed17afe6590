"""Facts about a GPU for prompts. Nothing is measured here."""

from __future__ import annotations

from dataclasses import dataclass

from harness.hardware.cuda_driver import list_gpus
from harness.hardware.gpus import GpuModel, find_gpu_model, match_gpu_model


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU for prompt templates. `arch` is the compute capability; unknown rates are None. GB and GB/s are powers of
    ten, KB of shared memory are KiB, as in datasheets.
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
    gpus = list_gpus()
    if not gpus:
        return None
    gpu, model = gpus[0], match_gpu_model(gpus[0].name)
    return GpuFacts(
        name=gpu.name,
        arch=gpu.architecture,
        memory_gb=round(gpu.memory_bytes / 1e9),
        sms=gpu.multiprocessors,
        shared_per_sm_kb=gpu.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=gpu.shared_bytes_per_block // 1024,
        l2_mb=round(gpu.l2_bytes / 2**20),
        bandwidth_gb_s=model.bandwidth_gb_s if model else None,
        fp32_tflops=model.fp32_tflops if model else None,
        tf32_tflops=model.tf32_tflops if model else None,
        bf16_tflops=model.bf16_tflops if model else None,
    )
