"""Compares and copies large tensors in slices, to save memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from harness.protocol import group_equal

SLICE_ELEMENTS = 4 << 20
WHOLE_BYTES = 64 << 20  # non-contiguous tensors up to this size are copied at once


def count_bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def has_same_bits(a: Tensor, b: Tensor) -> bool:
    """NaN equals itself; 0.0 differs from -0.0. The devices may differ."""
    return all(torch.equal(left.view(torch.uint8), right.view(torch.uint8)) for left, right in cut_pairs(a, b))


def cut_slices(
    *tensors: Tensor, elements: int, whole_bytes: int = WHOLE_BYTES
) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Yield (first index, the same flat stretch of each tensor). Copy few slices of large non-contiguous tensors at a
    time.
    """
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


def cut_pairs(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Use the GPU if one tensor is there: it reads host memory faster than copies arrive in it."""
    where = a.device if a.is_cuda else b.device
    for _, (left, right) in cut_slices(a, b, elements=SLICE_ELEMENTS):
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
