from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from harness.hardware.host import available_memory_bytes
from harness.protocol import device_memory
from harness.sandbox.devices.base import Device, GpuArena, SharedArena
from harness.sandbox.devices.cpu import MINIMUM_CACHE_BYTES, CpuDevice
from harness.sandbox.memory_limits import Room, count_free_bytes

if TYPE_CHECKING:
    from harness.sandbox.arena_layout import Footprint
    from harness.sandbox.model_session import ModelSession
    from harness.sandbox.worker_client import WorkerClient

CORES_TO_SPARE = 4
INPUT_SLACK_BYTES = 64 << 20  # searching so much for the inputs costs more than it could gain
SLICE_BYTES = 1 << 30
TF32_CAPABILITY = (8, 0)
BUSY_US = 1000.0  # a tiny operation takes this long only while another process uses the GPU
QUIET_PROBES = 2  # in a row


class CudaDevice(Device):
    has_contexts: ClassVar[bool] = True
    replays_calls: ClassVar[bool] = True
    keeps_references: ClassVar[bool] = True
    input_slack_bytes: ClassVar[int] = INPUT_SLACK_BYTES
    peak_tensor_bytes: ClassVar[int] = 1 << 30
    matrix_size: ClassVar[int] = 8192
    matrix_formats: ClassVar[tuple[str, ...]] = ("float32", "tf32", "bfloat16", "float16")
    context_bytes: ClassVar[int] = 1 << 30

    def __init__(self, name: str = "cuda:0", *, memory_bytes: int | None = None) -> None:
        super().__init__(name, torch.device(name), memory_bytes)
        self._allocated_bytes = 0

    @property
    def chip(self) -> str:
        return torch.cuda.get_device_name(self.torch_device)

    @property
    def lock_name(self) -> str:
        return str(torch.cuda.get_device_properties(self.torch_device).uuid)

    @property
    def replayer_cores(self) -> list[int]:
        """One core if possible, so that none gains by its core."""
        return sorted(self._cores)[-1:] if len(self._cores) >= CORES_TO_SPARE else sorted(self._cores)

    @property
    def evaluator_cores(self) -> set[int]:
        """Exclude the replayers' core and its neighbour, which may share the physical core."""
        return set(sorted(self._cores)[:-2]) if len(self._cores) >= CORES_TO_SPARE else self._cores

    def describe(self) -> Mapping[str, str]:
        """Clocks are current. Raises ImportError or NVMLError."""
        nvml, handle = self._find_nvml()
        clock = nvml.nvmlDeviceGetClockInfo
        return {
            "gpu": str(nvml.nvmlDeviceGetName(handle)),
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
            "gpu_memory_bytes": str(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            "sm_clock_mhz": str(clock(handle, nvml.NVML_CLOCK_SM)),
            "memory_clock_mhz": str(clock(handle, nvml.NVML_CLOCK_MEM)),
        }

    def measure_room(self) -> Room:
        free_bytes = count_free_bytes(self.torch_device)
        if self._memory_bytes is not None:
            free_bytes = min(free_bytes, self._memory_bytes)
        return Room(device_bytes=free_bytes, host_bytes=available_memory_bytes(), is_shared=False)

    @property
    def slice_bytes(self) -> int:
        return SLICE_BYTES + 2 * self.cache_bytes()

    def watch_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.torch_device)
        self._allocated_bytes = torch.cuda.memory_allocated(self.torch_device)

    def read_peak(self) -> int | None:
        return torch.cuda.max_memory_allocated(self.torch_device) - self._allocated_bytes

    def count_own_bytes(self) -> int:
        return torch.cuda.memory_reserved(self.torch_device)

    def count_used_bytes(self) -> int:
        free_bytes, total_bytes = torch.cuda.mem_get_info(self.torch_device)
        return total_bytes - free_bytes

    def release_allocator_cache(self, *, needed_bytes: int | None = None) -> None:
        """Free cuBLAS's workspaces, too, which may be in large blocks of torch's cache."""
        if needed_bytes is not None and torch.cuda.mem_get_info(self.torch_device)[0] >= needed_bytes:
            return
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()

    def release_memory(self) -> None:
        gc.collect()
        super().release_memory()

    def allocate(self, size_bytes: int) -> SharedArena:
        return GpuArena(size_bytes, self.torch_device)

    def open_session(
        self, client: WorkerClient, arena: SharedArena, footprint: Footprint, *, keeps_on_host: bool
    ) -> AbstractContextManager[ModelSession]:
        from harness.sandbox.gpu.window import WindowSession

        return closing(WindowSession(client, arena, footprint, self, keeps_on_host=keeps_on_host))

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def check(self) -> None:
        torch.ones(1, device=self.torch_device).add_(1)
        self.synchronize()

    def find_loading_device(self) -> Device:
        return CpuDevice()

    def await_quiet(self, limit_s: float) -> bool:
        """Tiny operations are then fast."""
        deadline_s = time.monotonic() + limit_s
        quick = 0
        while quick < QUIET_PROBES:
            # The operation waits for kernels of other processes.
            began_ns = time.perf_counter_ns()
            self._probe.add_(1.0)
            self.synchronize()
            quick = quick + 1 if time.perf_counter_ns() - began_ns < 1e3 * BUSY_US else 0
            if time.monotonic() > deadline_s:
                return False
        return True

    @cached_property
    def _probe(self) -> torch.Tensor:
        return torch.zeros(1, device=self.torch_device)

    def open_nvml(self) -> tuple[Any, Any] | None:
        try:
            import pynvml
        except ImportError:
            return None
        try:
            return self._find_nvml()
        except pynvml.NVMLError:
            return None

    def _find_nvml(self) -> tuple[Any, Any]:
        """Raises ImportError or NVMLError."""
        import pynvml

        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(self.torch_device).uuid)
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")

    @property
    def has_tf32(self) -> bool:
        return torch.cuda.get_device_capability(self.torch_device) >= TF32_CAPABILITY

    def reset_persisting_lines(self) -> None:
        device_memory.reset_persisting_cache()

    def cache_bytes(self) -> int:
        return max(int(torch.cuda.get_device_properties(self.torch_device).L2_cache_size), MINIMUM_CACHE_BYTES)
