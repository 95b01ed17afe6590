from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harness.domain import EMULATED
from harness.hardware.gpus import DEFAULT_TARGET, GpuModel, find_gpu_model
from harness.sandbox.devices.cpu import CpuDevice

KERNEL_SHARE = 0.8  # of a call's limit: the emulator stops a longer kernel, and can name it


class EmulatedDevice(CpuDevice):
    is_emulated: ClassVar[bool] = True
    is_timed: ClassVar[bool] = False
    target: GpuModel

    def __init__(self, gpu: str | None = None, *, memory_bytes: int | None = None) -> None:
        """Raises UsageError for an unknown GPU."""
        super().__init__(EMULATED, memory_bytes=memory_bytes)
        self.target = find_gpu_model(gpu or DEFAULT_TARGET)

    @property
    def lock_name(self) -> str:
        return ""

    @property
    def seen_type(self) -> str:
        return "cuda"

    @property
    def seen_name(self) -> str:
        return "cuda"

    def describe(self) -> Mapping[str, str]:
        return {"emulated_gpu": self.target.name, "emulated_capability": self.target.architecture}

    def describe_emulation(self, threads: int, call_s: float) -> dict[str, Any]:
        settings = {"order": "ascending", "seed": 0, "threads": threads, "time_limit_s": KERNEL_SHARE * call_s}
        return {"target": _describe_properties(self.target), "settings": settings}


def _describe_properties(target: GpuModel) -> dict[str, Any]:
    major, minor = target.compute_capability
    return {
        "name": f"NVIDIA {target.name}",
        "major": major,
        "minor": minor,
        "total_memory": target.total_memory_bytes,
        "multi_processor_count": target.multiprocessors,
        "warp_size": target.warp_size,
        "max_threads_per_block": target.max_threads_per_block,
        "max_threads_per_multi_processor": target.max_threads_per_multiprocessor,
        "regs_per_multiprocessor": target.registers_per_block,
        "shared_memory_per_block": target.static_shared_bytes_per_block,
        "shared_memory_per_block_optin": target.max_shared_bytes_per_block,
        "shared_memory_per_multiprocessor": target.shared_bytes_per_multiprocessor,
        "L2_cache_size": target.l2_bytes,
        "clock_rate": target.clock_khz,
        "is_integrated": 0,
        "is_multi_gpu_board": 0,
    }
