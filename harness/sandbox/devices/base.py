from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from harness.domain import DeviceError
from harness.hardware.gpus import GpuModel
from harness.hardware.host import available_memory_bytes
from harness.protocol import TensorSpec, device_memory, storage_bytes
from harness.protocol.descriptors import closing_on_error, make_sealed_memory
from harness.sandbox.memory_limits import Room

if TYPE_CHECKING:
    from harness.sandbox.arena_layout import Footprint
    from harness.sandbox.model_session import ModelSession
    from harness.sandbox.worker_client import WorkerClient


class SharedArena(ABC):
    address = 0
    descriptor: int
    size_bytes: int

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def bytes_view(self, offset: int, size_bytes: int) -> torch.Tensor:
        """Raises DeviceError outside the arena."""
        if offset + size_bytes > self.size_bytes:
            raise DeviceError(f"bytes {offset} to {offset + size_bytes} are outside an arena of {self.size_bytes}")
        if size_bytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        return self._view_bytes(offset, size_bytes)

    @abstractmethod
    def _view_bytes(self, offset: int, size_bytes: int) -> torch.Tensor: ...

    def view(self, spec: TensorSpec) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if prod(spec.shape) == 0:
            return torch.empty_strided(spec.shape, spec.stride, dtype=dtype, device=self._device)
        flat = self.bytes_view(spec.offset, storage_bytes(spec)).view(dtype)
        return flat.as_strided(spec.shape, spec.stride)

    @abstractmethod
    def synchronize(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> SharedArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HostArena(SharedArena):
    def __init__(self, size_bytes: int) -> None:
        """Raises DeviceError if memory is short: Linux would report it only at the first write."""
        super().__init__(torch.device("cpu"))
        self.size_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        free_bytes = available_memory_bytes()
        if self.size_bytes > free_bytes:
            raise DeviceError(f"{self.size_bytes} bytes of shared memory are needed, but only {free_bytes} are free")
        try:
            self.descriptor = make_sealed_memory("harness-arena", self.size_bytes)
            with closing_on_error([self.descriptor]):
                self._mapped = mmap.mmap(self.descriptor, self.size_bytes)
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot map {self.size_bytes} bytes of shared memory: {error}") from error

    def _view_bytes(self, offset: int, size_bytes: int) -> torch.Tensor:
        return torch.frombuffer(self._mapped, dtype=torch.uint8, count=size_bytes, offset=offset)

    def synchronize(self) -> None: ...

    def close(self) -> None:
        os.close(self.descriptor)  # the mapping ends with the last tensor over it


class GpuArena(SharedArena):
    def __init__(self, size_bytes: int, device: torch.device) -> None:
        super().__init__(device)
        torch.cuda.synchronize(device)  # makes the primary context current
        self.address, self.descriptor, self.size_bytes = device_memory.allocate_shareable(size_bytes, device.index or 0)

    def _view_bytes(self, offset: int, size_bytes: int) -> torch.Tensor:
        holder = device_memory.DeviceBytes(self.address + offset, size_bytes)
        return torch.as_tensor(holder, device=self._device)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)

    def close(self) -> None:
        device_memory.free(self.address, self.size_bytes, self.descriptor)


class Device(ABC):
    """`is_timed`: times mean something. If `is_emulated`, candidates see the GPU `target`. If it `has_contexts`, each
    process needs one, which an illegal access destroys. If it `replays_calls`, these are asynchronous, and recorded. If
    it `keeps_references`, they stay for the next candidate.

    Peaks are measured with `peak_tensor_bytes` and square matrices of `matrix_size` in `matrix_formats`.
    `context_bytes` is an estimate for an idle process.
    """

    is_emulated: ClassVar[bool] = False
    is_timed: ClassVar[bool] = True
    has_contexts: ClassVar[bool] = False
    replays_calls: ClassVar[bool] = False
    keeps_references: ClassVar[bool] = False
    input_slack_bytes: ClassVar[int] = 0  # for inputs at a place that a worker cannot guess
    peak_tensor_bytes: ClassVar[int]
    matrix_size: ClassVar[int]
    matrix_formats: ClassVar[tuple[str, ...]] = ("float32",)
    context_bytes: ClassVar[int] = 0
    target: GpuModel | None = None

    def __init__(self, name: str, torch_device: torch.device, memory_bytes: int | None) -> None:
        self.name = name
        self.torch_device = torch_device
        self.seen_type, self.seen_name = torch_device.type, name
        self._memory_bytes = memory_bytes
        self._cores = os.sched_getaffinity(0)
        self._flush_buffer: torch.Tensor | None = None

    @property
    @abstractmethod
    def chip(self) -> str: ...

    @property
    @abstractmethod
    def lock_name(self) -> str:
        """Name of the lock that prevents two measurements at once; empty without measurements."""

    @property
    def replayer_cores(self) -> list[int]:
        return sorted(self._cores)

    @property
    @abstractmethod
    def evaluator_cores(self) -> set[int]:
        """Cores for the evaluator while a worker is timed."""

    def describe(self) -> Mapping[str, str]:
        return {}

    def describe_emulation(self, threads: int, call_s: float) -> dict[str, Any] | None:
        return None

    @abstractmethod
    def measure_room(self) -> Room:
        """Free memory that an evaluation may plan with."""

    @property
    def slice_bytes(self) -> int:
        """Memory for comparing a slice of two tensors and for flushing the cache."""
        return 0

    @abstractmethod
    def watch_peak(self) -> None: ...

    def read_peak(self) -> int | None:
        """Return the most memory in use since `watch_peak`, or None if unknown."""
        return None

    def count_own_bytes(self) -> int:
        """Memory of the device that this process has reserved; 0 on a CPU."""
        return 0

    def count_used_bytes(self) -> int:
        """Returns 0 on a CPU, where workers have their own limits."""
        return 0

    @abstractmethod
    def release_allocator_cache(self, *, needed_bytes: int | None = None) -> None:
        """Do nothing if `needed_bytes` are free."""

    def release_memory(self) -> None:
        self._flush_buffer = None
        self.release_allocator_cache()

    @abstractmethod
    def allocate(self, size_bytes: int) -> SharedArena: ...

    @abstractmethod
    def synchronize(self) -> None: ...

    @abstractmethod
    def check(self) -> None:
        """Raises RuntimeError if torch cannot use the device."""

    def find_loading_device(self) -> Device:
        """Return the device on which a candidate is loaded without a GPU."""
        return self

    def open_nvml(self) -> tuple[Any, Any] | None:
        return None

    def read_core_clocks_mhz(self, cores: set[int]) -> list[float]:
        """Return the clocks of the cores that compute a candidate's outputs."""
        return []

    @property
    def has_tf32(self) -> bool:
        return False

    def flush_cache(self, *, once: bool = False) -> None:
        """Overwrite a buffer of twice the last-level cache, or `once` its size. A GPU does it asynchronously."""
        if self._flush_buffer is None:
            elements = 2 * self.cache_bytes() // 4
            self._flush_buffer = torch.zeros(elements, dtype=torch.float32, device=self.torch_device)
        written = self._flush_buffer[: self._flush_buffer.numel() // 2] if once else self._flush_buffer
        written.add_(1.0)

    @abstractmethod
    def reset_persisting_lines(self) -> None: ...

    @abstractmethod
    def open_session(
        self, client: WorkerClient, arena: SharedArena, footprint: Footprint, *, keeps_on_host: bool
    ) -> AbstractContextManager[ModelSession]: ...

    def await_quiet(self, limit_s: float) -> bool:
        """Wait until no other process uses the GPU. Returns False if one still does after `limit_s`."""
        return True

    @abstractmethod
    def cache_bytes(self) -> int: ...
