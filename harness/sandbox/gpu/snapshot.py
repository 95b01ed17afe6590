"""The evaluator's copies of outputs on a GPU."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from harness.protocol import TensorSpec, device_memory
from harness.sandbox.devices import STAGING_BYTES, Device
from harness.sandbox.gpu.worker_memory import Stretch


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`ended_ns`: end of copying, monotonic."""

    outputs: tuple[Tensor, ...]
    ended_ns: int = 0


def take_snapshot(
    stretches: Sequence[Stretch],
    specs: Sequence[TensorSpec],
    device: Device,
    source: random.Random,
    copy: Callable[[int, Tensor], Tensor] = lambda _, output: output.clone(),
) -> Snapshot:
    """Copies outputs in random order. Small ones use the copy engine, without a context switch and from a random byte
    on, so that a late writer does not know what is read first; larger ones use `copy(index, output)`."""
    if sum(stretch.size_bytes for stretch in stretches) <= STAGING_BYTES:
        return _copy_through_host(stretches, specs, device, source)
    order = source.sample(range(len(specs)), len(specs))
    copies = {index: copy(index, _view(view_bytes(stretches[index], device), specs[index])) for index in order}
    device.synchronize()
    return Snapshot(tuple(copies[index] for index in range(len(specs))), time.monotonic_ns())


def _copy_through_host(
    stretches: Sequence[Stretch], specs: Sequence[TensorSpec], device: Device, source: random.Random
) -> Snapshot:
    sizes = [stretch.size_bytes for stretch in stretches]
    offsets = list(accumulate(sizes, initial=0))
    target = device.staging.data_ptr()
    for first, last in _split_at_random(offsets[-1], source):
        for stretch, offset in zip(stretches, offsets, strict=False):
            begin, end = max(first - offset, 0), min(last - offset, stretch.size_bytes)
            if begin < end:
                device_memory.copy_to_host(target + offset + begin, stretch.address + begin, end - begin)
    device.synchronize()
    ended_ns = time.monotonic_ns()
    parts = (device.staging[offset : offset + size] for offset, size in zip(offsets, sizes, strict=False))
    copies = (part.to(device.torch_device, copy=True) for part in parts)
    return Snapshot(tuple(_view(copy, spec) for copy, spec in zip(copies, specs, strict=True)), ended_ns)


def view_outputs(stretches: Sequence[Stretch], specs: Sequence[TensorSpec], device: Device) -> Iterator[Tensor]:
    return (_view(view_bytes(stretch, device), spec) for stretch, spec in zip(stretches, specs, strict=True))


def _view(memory: Tensor, spec: TensorSpec) -> Tensor:
    return memory.view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.stride)


def _split_at_random(size_bytes: int, source: random.Random) -> tuple[tuple[int, int], tuple[int, int]]:
    middle = source.randrange(size_bytes) if size_bytes else 0
    return (middle, size_bytes), (0, middle)


def view_bytes(stretch: Stretch, device: Device) -> Tensor:
    if stretch.size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8, device=device.torch_device)
    holder = device_memory.DeviceBytes(stretch.address, stretch.size_bytes)
    return torch.as_tensor(holder, device=device.torch_device)
