"""Traverses nested values with tensors, seeds torch before calls, compares and copies large tensors in slices."""

import mmap
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, Self

import torch
from torch import Tensor, nn

from harness.protocol import count_span, device_memory, group_equal, list_leaves, map_leaves


class SeededInputs(tuple[Any, ...]):
    seed: int

    @classmethod
    def make(cls, inputs: Iterable[Any], seed: int) -> Self:
        made = cls(inputs)
        made.seed = seed
        return made


def seed_call(inputs: Iterable[Any], input_seed: int) -> SeededInputs:
    """Derive torch's seed from the secret seed of the inputs."""
    return SeededInputs.make(inputs, random.Random(f"call {input_seed}").getrandbits(62))


def read_seed(inputs: Sequence[Any]) -> int | None:
    return inputs.seed if isinstance(inputs, SeededInputs) else None


def keep_seed(changed: Iterable[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    seed = read_seed(inputs)
    return tuple(changed) if seed is None else SeededInputs.make(changed, seed)


@contextmanager
def seeded_call(model: nn.Module, inputs: Sequence[Any]) -> Iterator[None]:
    """Restore the generators afterwards."""
    seed = read_seed(inputs)
    if seed is None:
        yield
        return
    used = {
        tensor.device for tensor in chain(list_tensors(inputs), model.parameters(), model.buffers()) if tensor.is_cuda
    }
    with torch.random.fork_rng(devices=list(used)):
        torch.default_generator.manual_seed(seed)
        for device in used:
            torch.cuda.default_generators[device.index].manual_seed(seed)
        yield


def read_generators(device: torch.device) -> tuple[Tensor, ...]:
    """Their state advances if a call draws random numbers."""
    host = (torch.random.get_rng_state(),)
    return (*host, torch.cuda.get_rng_state(device)) if device.type == "cuda" else host


def have_advanced(before: Sequence[Tensor], device: torch.device) -> bool:
    return not all(torch.equal(one, other) for one, other in zip(before, read_generators(device), strict=True))


def list_tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in list_leaves(value) if isinstance(leaf, Tensor)]


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return map_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, Tensor) else leaf)


def list_memory(value: Any) -> set[int]:
    return {memory_of(tensor) for tensor in list_tensors(value) if tensor.layout is torch.strided}


def memory_of(tensor: Tensor) -> int:
    """Return the address of the storage; 0 for layouts without one."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def read_version(tensor: Tensor) -> int:
    """Each operator that works in place raises it, also one that happens to change nothing. 0 for inference tensors."""
    return 0 if tensor.is_inference() else tensor._version


SLICE_ELEMENTS = 4 << 20
EQUAL_ELEMENTS = 1 << 27  # compared at a time on a GPU, which waits after each
COMPARED_BYTES = 8  # at once, where tensors are aligned
WHOLE_BYTES = 64 << 20  # non-contiguous tensors up to this size are copied at once


def count_bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def has_same_bits(a: Tensor, b: Tensor) -> bool:
    """NaN equals itself; 0.0 differs from -0.0. The devices may differ."""
    elements = EQUAL_ELEMENTS if a.is_cuda and b.is_cuda else SLICE_ELEMENTS
    return all(_are_equal(left, right) for left, right in cut_pairs(a, b, elements=elements))


def _are_equal(*parts: Tensor) -> bool:
    has_words = all(is_aligned(one, COMPARED_BYTES) and not one.nbytes % COMPARED_BYTES for one in parts)
    left, right = (one.view(torch.int64 if has_words else torch.uint8) for one in parts)
    return torch.equal(left, right)


def is_aligned(tensor: Tensor, word_bytes: int) -> bool:
    """True if a contiguous tensor can be viewed as such words, from its first byte."""
    return not (tensor.data_ptr() % word_bytes or tensor.storage_offset() * tensor.element_size() % word_bytes)


def cut_slices(
    *tensors: Tensor, elements: int, whole_bytes: int = WHOLE_BYTES
) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Yield (first index, the same flat stretch of each tensor); of large non-contiguous tensors few at a time."""
    whole = [
        tensor.reshape(-1) if tensor.is_contiguous() or count_bytes((tensor,)) <= whole_bytes else tensor
        for tensor in tensors
    ]
    count = tensors[0].numel()
    for first in range(0, count, elements):
        yield first, tuple(cut_stretch(tensor, first, min(first + elements, count)).contiguous() for tensor in whole)


def cut_stretch(tensor: Tensor, first: int, last: int) -> Tensor:
    """Cut in row-major order; return a view if contiguous."""
    if tensor.is_contiguous():
        return tensor.reshape(-1)[first:last]
    row = tensor[0].numel()
    low, high = first // row, -(-last // row)
    start = low * row
    if high - low == 1:
        return cut_stretch(tensor[low], first - start, last - start)
    if row > last - first:
        return torch.cat(
            [cut_stretch(tensor[low], first - start, row), cut_stretch(tensor[low + 1], 0, last - start - row)]
        )
    return tensor[low:high].reshape(-1)[first - start : last - start]


def cut_pairs(a: Tensor, b: Tensor, elements: int = SLICE_ELEMENTS) -> Iterator[tuple[Tensor, Tensor]]:
    """Use the GPU if one tensor is there: it reads host memory faster than copies arrive in it."""
    where = a.device if a.is_cuda else b.device
    for _, (left, right) in cut_slices(a, b, elements=elements):
        yield left.to(where), right.to(where)


def pack_by_dtype(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return one flat tensor per dtype, in order of first appearance; a view of a single contiguous one."""
    groups = group_equal([tensor.dtype for tensor in tensors])
    return [_join([tensors[index].reshape(-1) for index in group]) for group in groups.values()]


def _join(flat: Sequence[Tensor]) -> Tensor:
    """Join bytes, since not every dtype can be concatenated."""
    if len(flat) == 1:
        return flat[0]
    return torch.cat([one.view(torch.uint8) for one in flat]).view(flat[0].dtype)


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


def copy_all_to_host(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return keep_seed(map_tensors(tuple(inputs), lambda tensor: copy_to(tensor, HOST)), inputs)


def _allocate_pinned(size_bytes: int) -> Tensor:
    """Return zeros in pinned memory that returns to the system when unused. Copies are slower if it is not pinned."""
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
