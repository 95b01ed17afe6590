"""Memory that the evaluator shares with one worker."""

from __future__ import annotations

import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from math import prod

import torch

from harness.domain import DeviceError
from harness.hardware.memory import available_memory_bytes
from harness.protocol import TensorSpec, device_memory, storage_bytes


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
        """Seal the size: if a worker shrank the file, the evaluator would crash."""
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

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
