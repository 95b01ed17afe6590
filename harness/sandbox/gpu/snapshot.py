"""The evaluator's copies of outputs on a GPU."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, TensorSpec, device_memory, storage_bytes
from harness.sandbox.devices import CudaDevice, Device
from harness.sandbox.gpu.worker_memory import Stretch
from harness.tensors.host_copies import HOST
from harness.tensors.output_samples import Rows, Sample, find_memory_order

COMBS, COMB_ROWS, COMB_WIDTH = 4, 2048, 256  # combs of one output; rows of all together; bytes of a row
EDGE_SHARE = 0.25  # of combs: these begin or end with the output, whose ends others hardly ever contain
SPARSE, MOST_OUTPUTS = 1.25, 32  # times more memory than elements; more are copied whole


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Times are monotonic. Outputs written after `began_ns` may be copied wrong; those written after the end are wrong.
    With a `sample`, `outputs` are its parts.
    """

    outputs: tuple[Tensor, ...]
    sample: Sample | None = None
    began_ns: int = 0
    ended_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comb:
    """Bytes of whole elements of one output: `rows` rows of `width` bytes, `pitch` bytes apart, starting at byte
    `first`.
    """

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

    def list_elements(self, spec: TensorSpec) -> Rows:
        bytes_each = ITEM_BYTES[spec.dtype]
        first, pitch, width = (size // bytes_each for size in (self.first, self.pitch, self.width))
        order = find_memory_order(spec) or ()
        return Rows(output=self.output, order=order, first=first, pitch=pitch, width=width, count=self.rows)


@dataclass(frozen=True, slots=True)
class Reading:
    combs: tuple[Comb, ...]
    copies: tuple[tuple[device_memory.RowsCopy, int, int], ...]  # with the comb's output and first byte

    def start(self, stretches: Sequence[Stretch]) -> int:
        """Return the time after starting the first copy (monotonic, ns)."""
        self.start_first(stretches)
        began_ns = time.monotonic_ns()
        for copy, output, first in self.copies[1:]:
            copy.start(stretches[output].address + first)
        return began_ns

    def start_first(self, stretches: Sequence[Stretch]) -> None:
        copy, output, first = self.copies[0]
        copy.start(stretches[output].address + first)


def prepare_reading(combs: Sequence[Comb], device: CudaDevice) -> Reading:
    staging = device.staging.data_ptr()
    copies = (
        device_memory.RowsCopy(staging + offset, pitch=comb.pitch, width=comb.width, rows=comb.rows)
        for comb, offset in zip(combs, _offsets(combs), strict=False)
    )
    placed = ((copy, comb.output, comb.first) for comb, copy in zip(combs, copies, strict=True))
    return Reading(tuple(combs), tuple(placed))


def _offsets(combs: Sequence[Comb]) -> list[int]:
    return list(accumulate((comb.size_bytes for comb in combs), initial=0))


def read_in_places(
    stretches: Sequence[Stretch],
    specs: Sequence[TensorSpec],
    reading: Reading,
    device: CudaDevice,
    where: torch.device,
    *,
    sample: Sample | None = None,
    began_ns: int = 0,
) -> Snapshot:
    """Copy outputs, or a `sample` of them and the combs, to the device `where`. `began_ns` is set if the reading was
    started before.

    The snapshot ends when combs with secret offsets have been read, which needs no context switch and hardly depends on
    the outputs' size. The later copies get the combs' bytes as first read.
    """
    began_ns = began_ns or reading.start(stretches)
    device.synchronize()
    ended_ns = time.monotonic_ns()
    read = [device.staging[begin:end] for begin, end in pairwise(_offsets(reading.combs))]
    placed = list(zip(reading.combs, read, strict=True))
    if sample is not None:
        views = enumerate(view_outputs(stretches, specs, device))
        parts = [[sample.take(index, view).to(HOST)] for index, view in views]
        for comb, found in placed:
            parts[comb.output].append(found.clone().view(parts[comb.output][0].dtype))
        sample = replace(sample, rows=tuple(comb.list_elements(specs[comb.output]) for comb in reading.combs))
        return Snapshot(tuple(map(torch.cat, parts)), sample, began_ns, ended_ns)
    copies = [view_bytes(stretch, device).to(where, copy=True) for stretch in stretches]
    for comb, found in reversed(placed):  # of bytes read twice the first ones remain
        comb.view(copies[comb.output]).copy_(found.view(comb.rows, comb.width))
    outputs = tuple(_view(copy, spec) for copy, spec in zip(copies, specs, strict=True))
    return Snapshot(outputs, sample, began_ns, ended_ns)


def choose_combs(specs: Sequence[TensorSpec], source: random.Random) -> list[Comb]:
    """Fit the staging memory: read small outputs whole, and larger ones by rows in proportion to their bytes. Each comb
    has its own pitch, so that no regular pattern of late bytes falls between the rows. Return nothing for many outputs,
    or if one is sparse in its memory.
    """
    if len(specs) > MOST_OUTPUTS or any(map(_is_sparse, specs)):
        return []
    sizes = list(map(storage_bytes, specs))
    total = sum(sizes)
    combs: list[Comb] = []
    for output, size in enumerate(sizes):
        if size:
            rows = -(-COMB_ROWS * size // total)
            combs += _choose_for(output, size, rows, ITEM_BYTES[specs[output].dtype], source)
    return combs


def _is_sparse(spec: TensorSpec) -> bool:
    return storage_bytes(spec) > SPARSE * prod(spec.shape) * ITEM_BYTES[spec.dtype]


def _choose_for(output: int, size: int, rows: int, item: int, source: random.Random) -> Iterator[Comb]:
    if size <= rows * COMB_WIDTH:
        middle = source.randrange(0, size, item)  # a late writer does not know what is read first
        for first, width in ((middle, size - middle), (0, middle)):
            if width:
                yield Comb(output=output, first=first, pitch=size, width=width, rows=1)
        return
    for _ in range(COMBS):
        most = -(-rows // COMBS)
        pitch = max(-(-size // (source.randint(-(-most // 2), most) * item)) * item, COMB_WIDTH)
        first = source.randrange(0, min(pitch, size) - COMB_WIDTH + 1, item)
        if source.random() < EDGE_SHARE:
            first = source.choice((0, (size - COMB_WIDTH) % pitch))
        yield Comb(
            output=output, first=first, pitch=pitch, width=COMB_WIDTH, rows=(size - first - COMB_WIDTH) // pitch + 1
        )


def copy_whole(
    stretches: Sequence[Stretch],
    specs: Sequence[TensorSpec],
    device: Device,
    source: random.Random,
    copy: Callable[[int, Tensor], Tensor],
    *,
    sample: Sample | None = None,
) -> Snapshot:
    """Copy in random order. The snapshot ends with the last copy, and may begin as late, since copies by kernels wait
    for a context switch.
    """
    order = source.sample(range(len(specs)), len(specs))
    copies = {index: copy(index, _view(view_bytes(stretches[index], device), specs[index])) for index in order}
    device.synchronize()
    ended_ns = time.monotonic_ns()
    outputs = tuple(copies[index] for index in range(len(specs)))
    return Snapshot(outputs, sample, began_ns=ended_ns, ended_ns=ended_ns)


def view_outputs(stretches: Sequence[Stretch], specs: Sequence[TensorSpec], device: Device) -> Iterator[Tensor]:
    return (_view(view_bytes(stretch, device), spec) for stretch, spec in zip(stretches, specs, strict=True))


def _view(memory: Tensor, spec: TensorSpec) -> Tensor:
    return memory.view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.stride)


def view_bytes(stretch: Stretch, device: Device) -> Tensor:
    if stretch.size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8, device=device.torch_device)
    holder = device_memory.DeviceBytes(stretch.address, stretch.size_bytes)
    return torch.as_tensor(holder, device=device.torch_device)
