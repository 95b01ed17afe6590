"""Devices that run candidates."""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import time
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import torch

from harness.domain import EMULATED, DeviceError, Language
from harness.emulator import DEFAULT_TARGET
from harness.hardware.gpus import GpuModel, find_gpu_model
from harness.hardware.memory import available_memory_bytes
from harness.languages.devices import find_devices
from harness.protocol import TensorSpec, device_memory, storage_bytes
from harness.sandbox.memory_limits import count_free_bytes
from harness.sandbox.memory_plan import Room

MINIMUM_CACHE_BYTES = 32 << 20
BUSY_US = 1000.0  # a tiny operation takes this long only while another process uses the GPU
CORES_TO_SPARE = 4
QUIET_PROBES = 2  # in a row
STAGING_BYTES = 4 << 20  # pinned, for what is read of outputs at the end of a call
CONTEXT_BYTES, SLICE_BYTES = 1 << 30, 1 << 30
KERNEL_SHARE = 0.8  # of a call's limit: the emulator stops a longer kernel, and can name it


class SharedArena:
    """Memory mapped by the evaluator and one worker, which gets `descriptor`."""

    def __init__(self, size_bytes: int, device: torch.device) -> None:
        self._device = device
        self.address = 0  # on a GPU
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # makes the primary context current
            index = device.index or 0
            self.address, self.descriptor, self.size_bytes = device_memory.allocate_shareable(size_bytes, index)
        else:
            self.size_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
            self._map_memory_file()

    def _map_memory_file(self) -> None:
        """Raises DeviceError if memory is short: Linux would report it only at the first write."""
        free_bytes = available_memory_bytes()
        if self.size_bytes > free_bytes:
            raise DeviceError(f"{self.size_bytes} bytes of shared memory are needed, but only {free_bytes} are free")
        try:
            self.descriptor = os.memfd_create("harness-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            raise DeviceError(f"cannot create shared memory: {error}") from error
        try:
            os.ftruncate(self.descriptor, self.size_bytes)
            self._mapped = mmap.mmap(self.descriptor, self.size_bytes)
            self._keep_size()
        except (OSError, ValueError) as error:
            os.close(self.descriptor)
            raise DeviceError(f"cannot map {self.size_bytes} bytes of shared memory: {error}") from error

    def _keep_size(self) -> None:
        """If a worker shrank the file, the evaluator would crash."""
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def bytes_view(self, offset: int, size_bytes: int) -> torch.Tensor:
        """A uint8 view. Raises DeviceError outside the arena."""
        if offset + size_bytes > self.size_bytes:
            raise DeviceError(f"bytes {offset} to {offset + size_bytes} are outside an arena of {self.size_bytes}")
        if size_bytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        if self._device.type == "cuda":
            holder = device_memory.DeviceBytes(self.address + offset, size_bytes)
            return torch.as_tensor(holder, device=self._device)
        return torch.frombuffer(self._mapped, dtype=torch.uint8, count=size_bytes, offset=offset)

    def view(self, spec: TensorSpec) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if prod(spec.shape) == 0:
            return torch.empty_strided(spec.shape, spec.stride, dtype=dtype, device=self._device)
        flat = self.bytes_view(spec.offset, storage_bytes(spec)).view(dtype)
        return flat.as_strided(spec.shape, spec.stride)

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def close(self) -> None:
        if self._device.type == "cuda":
            device_memory.free(self.address, self.size_bytes, self.descriptor)
        else:
            os.close(self.descriptor)  # the mapping ends with the last tensor over it

    def __enter__(self) -> SharedArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Device:
    """`name`: "cpu", "cuda:N", or "emulated": the CPU, which candidates see as the GPU `target`."""

    def __init__(self, name: str, gpu: str | None = None, *, memory_bytes: int | None = None) -> None:
        """`gpu` to emulate (None: the default); `memory_bytes` for evaluations to plan with (None: all free memory).
        Raises UsageError."""
        self.name = name
        self._memory_bytes = memory_bytes
        self.target = find_gpu_model(gpu or DEFAULT_TARGET) if name == EMULATED else None
        self.torch_device = torch.device("cpu" if name == EMULATED else name)
        self._cores = os.sched_getaffinity(0)
        self._flush_buffer: torch.Tensor | None = None
        self._allocated_bytes = 0

    @property
    def is_cuda(self) -> bool:
        return self.torch_device.type == "cuda"

    @property
    def is_emulated(self) -> bool:
        return self.target is not None

    @property
    def seen_type(self) -> str:
        """The device type that workers see."""
        return "cuda" if self.is_emulated else self.torch_device.type

    @property
    def worker_core(self) -> int | None:
        """The core of all workers on a GPU; None with too few cores."""
        return max(self._cores) if self.is_cuda and len(self._cores) >= CORES_TO_SPARE else None

    def list_worker_cores(self) -> list[int]:
        """The same cores for all workers on a GPU, so that none gains by its core."""
        return sorted(self._cores) if self.worker_core is None else [self.worker_core]

    @property
    def evaluator_cores(self) -> set[int]:
        """Cores for the evaluator during timing. CPU: away from the workers' OpenMP threads, since a woken worker's
        main thread runs on the evaluator's core. GPU: neither the workers' core nor its neighbour, maybe its
        sibling."""
        if not self.is_cuda:
            return {min(self._cores)}
        return self._cores if self.worker_core is None else set(sorted(self._cores)[:-2])

    def describe_emulation(self, threads: int, call_s: float) -> dict[str, Any] | None:
        """The emulated GPU's properties by CUDA's names, and the emulator's settings."""
        if self.target is None:
            return None
        settings = {"order": "ascending", "seed": 0, "threads": threads, "time_limit_s": KERNEL_SHARE * call_s}
        return {"target": _describe_properties(self.target), "settings": settings}

    def measure_room(self) -> Room:
        free_bytes, host_bytes = count_free_bytes(self.torch_device), available_memory_bytes()
        if self._memory_bytes is not None:
            free_bytes = min(free_bytes, self._memory_bytes)
        is_shared = not self.is_cuda and self._memory_bytes is None
        return Room(device_bytes=free_bytes, host_bytes=host_bytes, is_shared=is_shared)

    @property
    def context_bytes(self) -> int:
        """Estimated memory of an idle process."""
        return CONTEXT_BYTES if self.is_cuda else 0

    @property
    def slice_bytes(self) -> int:
        """Memory for comparing a slice and flushing the cache."""
        return SLICE_BYTES + 2 * self.cache_bytes() if self.is_cuda else 0

    def watch_peak(self) -> None:
        """Starts the interval of `read_peak`."""
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.torch_device)
            self._allocated_bytes = torch.cuda.memory_allocated(self.torch_device)

    def read_peak(self, otherwise_bytes: int) -> int:
        """Bytes allocated by this process; on a CPU `otherwise_bytes`."""
        if not self.is_cuda:
            return otherwise_bytes
        return torch.cuda.max_memory_allocated(self.torch_device) - self._allocated_bytes

    def count_own_bytes(self) -> int:
        """Reserved by this process."""
        return torch.cuda.memory_reserved(self.torch_device) if self.is_cuda else 0

    def count_used_bytes(self) -> int:
        """Used by all processes; 0 on a CPU, where workers have their own limits."""
        if not self.is_cuda:
            return 0
        free_bytes, total_bytes = torch.cuda.mem_get_info(self.torch_device)
        return total_bytes - free_bytes

    def release_cache(self) -> None:
        """Frees torch's cache for other processes, with cuBLAS's workspaces, which may be in large blocks of it."""
        if self.is_cuda:
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()

    def release_memory(self) -> None:
        self._flush_buffer = None
        if self.is_cuda:
            gc.collect()
        self.release_cache()

    def allocate(self, size_bytes: int) -> SharedArena:
        return SharedArena(size_bytes, self.torch_device)

    def synchronize(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize(self.torch_device)

    def flush_cache(self, *, once: bool = False) -> None:
        """Writes twice the last-level cache, on a GPU asynchronously. `once`: on a CPU its size suffices."""
        if self._flush_buffer is None:
            elements = 2 * self.cache_bytes() // 4
            self._flush_buffer = torch.zeros(elements, dtype=torch.float32, device=self.torch_device)
        written = self._flush_buffer[: self._flush_buffer.numel() // 2] if once else self._flush_buffer
        written.add_(1.0)

    def reset_cache(self) -> None:
        """Resets a GPU's persisting lines."""
        device_memory.reset_persisting_cache()

    def await_quiet(self, limit_s: float) -> bool:
        """Waits until tiny operations on the GPU are fast, so no other process uses it. False after the limit."""
        deadline_s = time.monotonic() + limit_s
        quick = 0
        while quick < QUIET_PROBES:
            quick = quick + 1 if self.time_tiny_operation() < BUSY_US else 0
            if time.monotonic() > deadline_s:
                return False
        return True

    def time_tiny_operation(self) -> float:
        """Time in us. The operation waits for kernels of other processes."""
        began_ns = time.perf_counter_ns()
        self._probe.add_(1.0)
        self.synchronize()
        return (time.perf_counter_ns() - began_ns) / 1e3

    @cached_property
    def _probe(self) -> torch.Tensor:
        return torch.zeros(1, device=self.torch_device)

    @cached_property
    def staging(self) -> torch.Tensor:
        return torch.empty(STAGING_BYTES, dtype=torch.uint8, pin_memory=True)

    def cache_bytes(self) -> int:
        if self.is_cuda:
            return max(int(torch.cuda.get_device_properties(self.torch_device).L2_cache_size), MINIMUM_CACHE_BYTES)
        return max(_last_level_cache_bytes(), MINIMUM_CACHE_BYTES)


def open_device(wanted: str, language: Language, gpu: str | None = None) -> Device | None:
    """The first of `find_devices`, or None."""
    names = find_devices(wanted, language)
    return Device(names[0], gpu) if names else None


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


def find_gpu(device: Device) -> tuple[Any, Any]:
    """NVML and a handle. Raises ImportError or NVMLError."""
    import pynvml

    pynvml.nvmlInit()
    uuid = str(torch.cuda.get_device_properties(device.torch_device).uuid)
    return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")


def open_gpu(device: Device) -> tuple[Any, Any] | None:
    """`find_gpu`, or None without a GPU or NVML."""
    if not device.is_cuda:
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        return find_gpu(device)
    except pynvml.NVMLError:
        return None


def _last_level_cache_bytes() -> int:
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[-1]])
    return max(sizes)
