"""The evaluator's copies of outputs on a GPU."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from harness.protocol import TensorSpec, device_memory, storage_bytes
from harness.sandbox.devices import Device
from harness.sandbox.gpu.worker_memory import Stretch

COMB_ROWS, COMB_WIDTH = 2048, 256  # of all outputs together; the copy engine takes about 20 us


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`ended_ns`: monotonic; outputs that are late at that time are wrong."""

    outputs: tuple[Tensor, ...]
    ended_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comb:
    """Bytes of one output: `rows` rows of `width` bytes, `pitch` bytes apart, from byte `first` on."""

    output: int
    first: int
    pitch: int
    width: int
    rows: int

    @property
    def size_bytes(self) -> int:
        return self.width * self.rows

    def view(self, memory: Tensor) -> Tensor:
        return memory.as_strided((self.rows, self.width), (self.pitch, 1), memory.storage_offset() + self.first)


def take_snapshot(
    stretches: Sequence[Stretch],
    specs: Sequence[TensorSpec],
    combs: Sequence[Comb],
    device: Device,
    where: torch.device,
) -> Snapshot:
    """Copies outputs to the device `where`.

    The snapshot ends when combs with secret offsets have been read of them, which needs no context switch and hardly
    depends on their size. The copies are made afterwards, and contain the combs' bytes as they were read first.
    """
    offsets = list(accumulate((comb.size_bytes for comb in combs), initial=0))
    for comb, offset in zip(combs, offsets, strict=False):
        device_memory.copy_rows_to_host(
            device.staging.data_ptr() + offset,
            stretches[comb.output].address + comb.first,
            pitch=comb.pitch,
            width=comb.width,
            rows=comb.rows,
        )
    device.synchronize()
    ended_ns = time.monotonic_ns()
    copies = [view_bytes(stretch, device).to(where, copy=True) for stretch in stretches]
    for comb, offset in zip(combs, offsets, strict=False):
        read = device.staging[offset : offset + comb.size_bytes]
        comb.view(copies[comb.output]).copy_(read.view(comb.rows, comb.width))
    return Snapshot(tuple(_view(copy, spec) for copy, spec in zip(copies, specs, strict=True)), ended_ns)


def choose_combs(specs: Sequence[TensorSpec], source: random.Random) -> list[Comb]:
    """Within the staging memory: small outputs whole, of larger ones rows by their share of all bytes. Each output's
    comb is read from a random place on, so that a late writer does not know what is read first."""
    sizes = list(map(storage_bytes, specs))
    total = sum(sizes)
    combs = []
    for output, size in enumerate(sizes):
        if size == 0:
            continue
        rows = -(-COMB_ROWS * size // total)
        if size <= rows * COMB_WIDTH:
            middle = source.randrange(size)
            parts = [(middle, size - middle, 1), (0, middle, 1)]
            pitch = size
        else:
            pitch = -(-size // rows)
            first = source.randrange(pitch - COMB_WIDTH + 1)
            rows = (size - first - COMB_WIDTH) // pitch + 1
            middle = source.randrange(rows)
            parts = [(first + middle * pitch, COMB_WIDTH, rows - middle), (first, COMB_WIDTH, middle)]
        combs += [
            Comb(output=output, first=first, pitch=pitch, width=width, rows=rows)
            for first, width, rows in parts
            if width * rows
        ]
    return combs


def sample_snapshot(
    stretches: Sequence[Stretch],
    specs: Sequence[TensorSpec],
    device: Device,
    source: random.Random,
    take: Callable[[int, Tensor], Tensor],
) -> Snapshot:
    """Only `take(index, output)` of each output, in random order: slower, for little memory."""
    order = source.sample(range(len(specs)), len(specs))
    copies = {index: take(index, _view(view_bytes(stretches[index], device), specs[index])) for index in order}
    device.synchronize()
    return Snapshot(tuple(copies[index] for index in range(len(specs))), time.monotonic_ns())


def view_outputs(stretches: Sequence[Stretch], specs: Sequence[TensorSpec], device: Device) -> Iterator[Tensor]:
    return (_view(view_bytes(stretch, device), spec) for stretch, spec in zip(stretches, specs, strict=True))


def _view(memory: Tensor, spec: TensorSpec) -> Tensor:
    return memory.view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.stride)


def view_bytes(stretch: Stretch, device: Device) -> Tensor:
    if stretch.size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8, device=device.torch_device)
    holder = device_memory.DeviceBytes(stretch.address, stretch.size_bytes)
    return torch.as_tensor(holder, device=device.torch_device)
