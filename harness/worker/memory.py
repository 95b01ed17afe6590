"""Tensors over the memory shared with the evaluator."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from math import prod

import torch

from harness.protocol import TensorSpec, device_memory, place_contiguous, storage_bytes
from harness.protocol.tensor_layout import row_major_stride


class SharedMemory:
    """Uses a mapped file on the CPU and device memory on a GPU."""

    def __init__(self, descriptor: int, size_bytes: int, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.set_device(device)
            torch.cuda.synchronize()  # makes the primary context current
            self.address = device_memory.map_descriptor(descriptor, size_bytes, device.index or 0)
        else:
            self._mapped = mmap.mmap(descriptor, size_bytes)
            self.address = torch.frombuffer(self._mapped, dtype=torch.uint8).data_ptr()  # of the first byte
        os.close(descriptor)

    def view(self, spec: TensorSpec) -> torch.Tensor:
        dtype = getattr(torch, spec.dtype)
        if prod(spec.shape) == 0:
            return torch.empty_strided(spec.shape, spec.stride, dtype=dtype, device=self._device)
        size_bytes = storage_bytes(spec)
        if self._device.type == "cuda":
            holder = device_memory.DeviceBytes(self.address + spec.offset, size_bytes)
            flat = torch.as_tensor(holder, device=self._device).view(dtype)
        else:
            flat = torch.frombuffer(self._mapped, dtype=dtype, count=size_bytes // dtype.itemsize, offset=spec.offset)
        return flat.as_strided(spec.shape, spec.stride)

    def prepare(self, specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
        return [torch.empty(0, dtype=getattr(torch, spec.dtype), device=self._device) for spec in specs]

    def fill(self, empty: Sequence[torch.Tensor], specs: Sequence[TensorSpec], shift_bytes: int) -> list[torch.Tensor]:
        """Point tensors at their specs plus `shift_bytes`; takes a few µs, unlike `view`."""
        for tensor, spec in zip(empty, specs, strict=True):
            start = self.address + spec.offset + shift_bytes
            storage = torch._C._construct_storage_from_data_pointer(start, self._device, storage_bytes(spec))
            tensor.set_(storage, 0, spec.shape, spec.stride)
        return list(empty)

    def store(self, tensors: Sequence[torch.Tensor], offset: int, size_bytes: int) -> tuple[TensorSpec, ...]:
        """Do nothing unless all tensors fit."""
        specs, end = place_contiguous([describe(tensor) for tensor in tensors], offset)
        if end - offset <= size_bytes:
            for spec, tensor in zip(specs, tensors, strict=True):
                self.view(spec).copy_(tensor)
        return specs


def describe(tensor: torch.Tensor) -> TensorSpec:
    """Layouts without strides, such as sparse, get row-major ones."""
    shape = tuple(map(int, tensor.shape))
    stride = tuple(map(int, tensor.stride())) if tensor.layout is torch.strided else row_major_stride(shape)
    return TensorSpec(dtype=str(tensor.dtype).removeprefix("torch."), shape=shape, stride=stride)
