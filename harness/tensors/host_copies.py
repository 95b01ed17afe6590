"""Copies tensors to another device with their strides."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from harness.protocol import count_span, device_memory
from harness.tensors.seeding import keep_seed
from harness.tensors.trees import map_tensors

HOST = torch.device("cpu")
PINNED_FROM_BYTES = 64 << 20


def copy_to(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy the whole span, so that strides stay. Large copies from a GPU are in pinned memory."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return tensor.detach().to(device, copy=True)
    span = tensor.detach().as_strided((count_span(tensor.shape, tensor.stride()),), (1,))
    if span.is_cuda and device == HOST and span.nbytes >= PINNED_FROM_BYTES:
        copy = _allocate_pinned(span.nbytes).view(span.dtype).copy_(span)
    else:
        copy = span.to(device, copy=True)
    return copy.as_strided(tensor.shape, tensor.stride())


def copy_all_to(inputs: Sequence[Any], device: torch.device) -> tuple[Any, ...]:
    return keep_seed(map_tensors(tuple(inputs), lambda tensor: copy_to(tensor, device)), inputs)


def _allocate_pinned(size_bytes: int) -> Tensor:
    """Return zeros in memory that is returned to the system when unused, unlike that of torch's pinned allocator. If
    the driver refuses to pin it, copies are only slower.
    """
    memory = _Pages(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)  # fewer pages to touch and to pin
    values = torch.frombuffer(memory, dtype=torch.uint8).zero_()  # by all threads: pinning untouched pages uses one
    if device_memory.pin(values.data_ptr(), values.nbytes):
        memory.pinned = values.data_ptr()
    return values


class _Pages(mmap.mmap):
    pinned = 0  # address, once pinned

    def __del__(self) -> None:
        if self.pinned:
            runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            runtime.cudaHostUnregister(self.pinned)  # unlike the driver's call, from any thread
