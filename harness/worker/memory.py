"""Tensors of calls: in shared memory, outputs, and state that calls change; the worker's side of a `Doorbell`."""

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from harness.domain import DeviceError, WireError
from harness.protocol import (
    Doorbell,
    Signal,
    TensorSpec,
    device_memory,
    flatten_value,
    group_equal,
    place_contiguous,
    storage_bytes,
)
from harness.protocol.channel import MAX_DESCRIPTORS
from harness.protocol.tensor_layout import NODE_TYPES, row_major_stride


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


Read = Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class _Group:
    """Tensors of one dtype. `shapes` holds, by index, those that are not one-dimensional."""

    reads: tuple[Read, ...]
    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def of(cls, reads: Sequence[Read], specs: Sequence[TensorSpec]) -> Self:
        shapes = ((index, spec.shape) for index, spec in enumerate(specs) if len(spec.shape) != 1)
        return cls(tuple(reads), tuple(torch.Size(spec.shape).numel() for spec in specs), tuple(shapes))

    def split(self, packed: Tensor) -> list[Tensor]:
        parts = list(packed.split_with_sizes(self.sizes))
        for index, shape in self.shapes:
            parts[index] = parts[index].view(shape)
        return parts


class HeldState:
    def __init__(self, model: nn.Module, entries: Sequence[tuple[str, str, TensorSpec]]) -> None:
        self.names = tuple(name for name, _, _ in entries)
        self._reads = [_find_state(model, own) for _, own, _ in entries]
        specs = [spec for _, _, spec in entries]
        groups = group_equal([spec.dtype for spec in specs]).values()
        self._groups = [_Group.of([self._reads[i] for i in group], [specs[i] for i in group]) for group in groups]

    def read(self) -> list[Tensor]:
        return [read().detach() for read in self._reads]

    def copy(self) -> list[Tensor]:
        return [one.clone() for one in self.read()]

    def split(self, packed: Sequence[Tensor]) -> list[list[Tensor]]:
        """`packed` holds one flat tensor per dtype, or none. Returns views; takes 1 us per tensor."""
        return [group.split(one) for group, one in zip(self._groups, packed, strict=False)]

    def load(self, parts: Sequence[list[Tensor]]) -> None:
        """Copy once per dtype: a loop over hundreds of statistics would take longer than some calls."""
        for group, sources in zip(self._groups, parts, strict=False):
            torch._foreach_copy_([read() for read in group.reads], sources)


def _find_state(model: nn.Module, name: str) -> Read:
    path, _, attribute = name.rpartition(".")
    with suppress(AttributeError):
        owner = model.get_submodule(path)
        for own in (owner._buffers, owner._parameters):  # `getattr` takes ten times as long
            if own.get(attribute) is not None:
                return cast(Read, partial(own.__getitem__, attribute))
        if torch.is_tensor(getattr(owner, attribute)):
            return partial(getattr, owner, attribute)
    return lambda: model.state_dict()[name]


class WrongOutputs(Exception):
    """The outputs have a structure that no reference can have."""


def flatten_outputs(result: Any) -> tuple[dict[str, Any], list[Tensor]]:
    """Raises WrongOutputs unless the result consists of tensors, plain values, and lists, tuples or dicts of them."""
    if type(result) is Tensor:
        return {"t": 0}, [result]
    count = 0

    def is_tensor(value: object) -> bool:
        nonlocal count
        if torch.is_tensor(value):
            count += 1
            return True
        if not isinstance(value, NODE_TYPES):
            raise WrongOutputs(f"output {count}: expected a tensor, found {_name_type(value)}")
        return False

    try:
        return flatten_value(result, is_tensor, by_name=True)
    except WireError as error:
        raise WrongOutputs(f"output {count}: {error}") from error


def read_outputs(result: Any) -> tuple[dict[str, Any], list[Tensor]]:
    """Writes lazy conjugation and negation to memory."""
    tree, tensors = flatten_outputs(result)
    return tree, resolve_views(tensors)


def require_dense(tensors: Sequence[Tensor]) -> None:
    """Raises WrongOutputs for tensors whose elements are not all in memory, in order."""
    for index, tensor in enumerate(tensors):
        if tensor.is_nested:
            kind = "a nested tensor"
        elif tensor.layout is not torch.strided:
            kind = f"a tensor of layout {str(tensor.layout).removeprefix('torch.')}"
        elif tensor.is_meta:
            kind = "a tensor on the meta device, without values"
        else:
            continue
        raise WrongOutputs(f"output {index}: expected a dense tensor, found {kind}")


def resolve_views(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.resolve_conj().resolve_neg() for tensor in tensors]


def _name_type(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


HOLD_CYCLES = 100_000_000  # 50 ms at 2 GHz: longer than most calls, and than HELD_US
STREAMS_PER_PRIORITY = 32  # in torch's pool, which hands them out in turn


@dataclass(frozen=True, slots=True)
class WindowCall:
    reported_ns: int
    tree: dict[str, Any]
    tensors: list[Tensor]
    state: list[Tensor]


class Window:
    def __init__(self, descriptor: int, device: torch.device) -> None:
        self._bell = Doorbell(descriptor)
        os.close(descriptor)
        self._touched = torch.ones(1, device=device)

    def await_call(
        self,
        forward: Callable[..., Any],
        place_inputs: Callable[[Doorbell], tuple[Sequence[Any], list[list[Tensor]]]],
        state: HeldState,
    ) -> WindowCall | None:
        """Make the call; return None on REST.

        WAKE also builds the tensors, so that this code is in the caches when the call is timed.
        """
        synchronize = torch._C._cuda_synchronize
        while (signal := self._bell.await_signal()) is Signal.WAKE:
            self._touched.add_(1.0)
            place_inputs(self._bell)
            synchronize()
            self._bell.answer()
        if signal is Signal.REST:
            self._bell.answer()
            return None
        inputs, given = place_inputs(self._bell)
        if given:
            state.load(given)
            synchronize()
        if signal is Signal.GO_AHEAD_OF_STREAMS:
            hold_other_streams()
            synchronize = self._synchronize_stream
        began_ns = time.perf_counter_ns()
        tree, tensors = flatten_outputs(forward(*inputs))
        if any(tensor.is_conj() or tensor.is_neg() for tensor in tensors):
            tensors = resolve_views(tensors)
        synchronize()
        addresses = [address_of(tensor) for tensor in tensors]
        reported_ns = time.perf_counter_ns() - began_ns
        left = state.copy()
        if left:
            synchronize()
            addresses += [address_of(tensor) for tensor in left]
        self._bell.answer_call(addresses)
        return WindowCall(reported_ns, tree, tensors, left)

    def _synchronize_stream(self) -> None:
        """Wait like a later operation: a kernel on the default stream waits for streams that block it."""
        self._touched.add_(1.0)
        torch.cuda.current_stream().synchronize()


def hold_other_streams() -> None:
    """Make work on all streams that torch provides wait behind a kernel that takes HOLD_CYCLES."""
    lowest, highest = torch.cuda.Stream.priority_range()  # type: ignore[call-arg]
    streams = [
        torch.cuda.Stream(priority=priority)  # type: ignore[no-untyped-call]
        for priority in range(highest, lowest + 1)
        for _ in range(STREAMS_PER_PRIORITY)
    ]
    with torch.cuda.stream(streams[0]):
        torch.cuda._sleep(HOLD_CYCLES)  # type: ignore[no-untyped-call]
    held = streams[0].record_event()
    for stream in streams[1:]:
        stream.wait_event(held)


def address_of(tensor: Tensor) -> int:
    """Return 0 for layouts without an address."""
    return tensor.data_ptr() if tensor.layout is torch.strided else 0


def export_pages(address: int) -> list[tuple[int, int, int]]:
    """Return (address, bytes, descriptor) of as many pages as fit a message. Empty if the memory cannot be shared."""
    pages: list[tuple[int, int, int]] = []
    while len(pages) < MAX_DESCRIPTORS:
        try:
            pages.append(device_memory.export_page(address))
        except DeviceError:
            break
        address = pages[-1][0] + pages[-1][1]
    return pages


def count_released_bytes(device: torch.device) -> int:
    """If it grows, addresses may have been reused. Without the driver library it counts only torch's memory."""
    count = getattr(ctypes.CDLL("libcuda.so.1"), "harness_unmapped_bytes", None)
    if count is None:
        return int(torch.cuda.memory_stats(device).get("reserved_bytes.all.freed", 0))
    count.restype = ctypes.c_ulonglong
    return int(count())
