"""The outputs of a call, and whether tensors hold the same bits: for repeated calls, kept weights and late changes.
Closeness to the truth is decided in `harness.evaluation.correctness.comparison`.

Tensors are compared in slices, so that a comparison takes little memory beside them, however large they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

SLICE_ELEMENTS = 4 << 20
WHOLE_BYTES = 64 << 20  # a tensor that is not contiguous and no larger than this is copied at once


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatOutputs:
    """The tensors that a `forward` returned, in order, and how they were nested (a tree as in `harness.protocol`)."""

    tree: dict[str, Any]
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How two sets of tensors of the same form differ: elements with other bits, of how many, and by how much at
    most (infinite where that cannot be said)."""

    differing: int
    elements: int
    largest: float

    def __str__(self) -> str:
        return f"{self.differing} of {self.elements} elements differ, by up to {self.largest:.3g}"


def find_difference(now: Sequence[Tensor], before: Sequence[Tensor]) -> Difference | None:
    """None where all bits are equal. Those before may lie on another device, from which slices are moved."""
    differing, largest = 0, 0.0
    for a, b in zip(now, before, strict=True):
        for _, (left, other) in cut_slices(a, b, elements=SLICE_ELEMENTS):
            right = other.to(left.device)
            if torch.equal(left.view(torch.uint8), right.view(torch.uint8)):
                continue
            differing += int(_bytes_of(left).ne(_bytes_of(right)).any(dim=1).count_nonzero())
            apart = (_widen(left) - _widen(right)).abs().max().item()
            largest = max(largest, math.inf if math.isnan(apart) else apart)
    if not differing:
        return None
    return Difference(differing=differing, elements=sum(tensor.numel() for tensor in now), largest=largest)


def has_same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits: NaN equals itself, and 0.0 differs from -0.0.
    They may lie on different devices."""
    parts = cut_slices(a, b, elements=SLICE_ELEMENTS)
    return all(
        torch.equal(left.view(torch.uint8), right.to(left.device).view(torch.uint8)) for _, (left, right) in parts
    )


def are_far_apart(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    """Whether some floating value is off by more than the largest that was expected: so wrong that nobody need look
    closer, which takes far longer. False also where that cannot be said."""
    return any(_is_far(a, b) for a, b in zip(expected, found, strict=False))


def cut_slices(
    *tensors: Tensor, elements: int, whole_bytes: int = WHOLE_BYTES
) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """The same stretch of each tensor, flat and in row-major order, with the index of its first element. The tensors
    have one shape; of a large one that is not contiguous no more than a few slices are copied at a time."""
    whole = [
        tensor.reshape(-1) if tensor.is_contiguous() or _size_bytes(tensor) <= whole_bytes else tensor
        for tensor in tensors
    ]
    count = tensors[0].numel()
    for first in range(0, count, elements):
        yield first, tuple(cut_stretch(tensor, first, min(first + elements, count)) for tensor in whole)


def cut_stretch(tensor: Tensor, first: int, last: int) -> Tensor:
    """The elements from `first` to `last`, in row-major order: a view where the tensor is contiguous."""
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


def _size_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _is_far(expected: Tensor, found: Tensor) -> bool:
    alike = (expected.shape, expected.dtype, expected.device) == (found.shape, found.dtype, found.device)
    if not alike or not expected.is_floating_point() or not expected.numel():
        return False
    apart, size = 0.0, 0.0
    for _, (ours, theirs) in cut_slices(expected, found, elements=SLICE_ELEMENTS):
        largest = torch.stack([(theirs - ours).abs_().max(), ours.abs().max()]).tolist()
        if any(map(math.isnan, largest)):
            return False
        apart, size = max(apart, largest[0]), max(size, largest[1])
    return apart > size


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.view(torch.uint8).view(tensor.numel(), -1)


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()
