from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from harness.domain import EMULATED
from harness.hardware.gpus import DEFAULT_TARGET, GpuModel, find_gpu_model
from harness.hardware.host import available_memory_bytes, cpu_name
from harness.sandbox.devices.base import Device, HostArena, SharedArena
from harness.sandbox.memory_limits import Room

if TYPE_CHECKING:
    from harness.sandbox.arena_layout import Footprint
    from harness.sandbox.model_session import ModelSession
    from harness.sandbox.worker_client import WorkerClient

MINIMUM_CACHE_BYTES = 32 << 20


class CpuDevice(Device):
    peak_tensor_bytes: ClassVar[int] = 192 << 20
    matrix_size: ClassVar[int] = 1024

    def __init__(self, name: str = "cpu", *, memory_bytes: int | None = None) -> None:
        super().__init__(name, torch.device("cpu"), memory_bytes)

    @property
    def chip(self) -> str:
        return cpu_name()

    @property
    def lock_name(self) -> str:
        return self.name

    @property
    def evaluator_cores(self) -> set[int]:
        """Exclude the workers' OpenMP cores: a woken worker's main thread runs on the evaluator's core."""
        return {min(self._cores)}

    def measure_room(self) -> Room:
        free_bytes = available_memory_bytes()
        planned_bytes = free_bytes if self._memory_bytes is None else min(free_bytes, self._memory_bytes)
        return Room(device_bytes=planned_bytes, host_bytes=free_bytes, is_shared=self._memory_bytes is None)

    def watch_peak(self) -> None: ...

    def release_allocator_cache(self, *, needed_bytes: int | None = None) -> None: ...

    def check(self) -> None: ...

    def reset_persisting_lines(self) -> None: ...

    def allocate(self, size_bytes: int) -> SharedArena:
        return HostArena(size_bytes)

    def open_session(
        self, client: WorkerClient, arena: SharedArena, footprint: Footprint, *, keeps_on_host: bool
    ) -> AbstractContextManager[ModelSession]:
        from harness.sandbox.model_session import ModelSession

        return nullcontext(ModelSession(client, arena, footprint, keeps_on_host=keeps_on_host))

    def synchronize(self) -> None: ...

    def read_core_clocks_mhz(self, cores: set[int]) -> list[float]:
        clocks = []
        for core in cores:
            with suppress(OSError, ValueError):
                path = Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq")
                clocks.append(int(path.read_text()) / 1000)
        return clocks

    def cache_bytes(self) -> int:
        sizes = [0]
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
            text = path.read_text().strip()
            sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[-1]])
        return max(*sizes, MINIMUM_CACHE_BYTES)


KERNEL_SHARE = 0.8  # of a call's limit: the emulator stops a longer kernel, and can name it


class EmulatedDevice(CpuDevice):
    is_emulated: ClassVar[bool] = True
    is_timed: ClassVar[bool] = False
    target: GpuModel

    def __init__(self, gpu: str | None = None, *, memory_bytes: int | None = None) -> None:
        """Raises UsageError for an unknown GPU."""
        super().__init__(EMULATED, memory_bytes=memory_bytes)
        self.seen_type = self.seen_name = "cuda"
        self.target = find_gpu_model(gpu or DEFAULT_TARGET)

    @property
    def lock_name(self) -> str:
        return ""

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
