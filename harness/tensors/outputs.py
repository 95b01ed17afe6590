"""Holds the outputs of a call, and compares them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from harness.protocol import add_state, have_same_nesting
from harness.tensors.slices import SLICE_ELEMENTS, cut_pairs, cut_slices

Place = TypeVar("Place", int, Tensor)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatOutputs:
    tree: dict[str, Any]
    tensors: tuple[Tensor, ...]

    def has_form_of(self, other: FlatOutputs) -> bool:
        mine, theirs = ([(tensor.shape, tensor.dtype) for tensor in one.tensors] for one in (self, other))
        return mine == theirs and have_same_nesting(self.tree, other.tree)

    def with_state(self, state: Mapping[str, Tensor]) -> FlatOutputs:
        """Return the outputs of a call that also returns this state of its module."""
        if not state:
            return self
        tree = add_state(self.tree, len(self.tensors), list(state))
        return FlatOutputs(tree=tree, tensors=(*self.tensors, *state.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`largest` is infinite if undefined. `differing` is None if unknown."""

    differing: int | None
    elements: int
    largest: float = math.inf

    def __str__(self) -> str:
        if self.differing is None:
            return f"some of {self.elements} elements differ"
        return f"{self.differing} of {self.elements} elements differ, by up to {self.largest:.3g}"


def find_difference(now: Sequence[Tensor], before: Sequence[Tensor]) -> Difference | None:
    """Return None for equal bits. The devices may differ."""
    differing, largest = 0, 0.0
    for a, b in zip(now, before, strict=True):
        for left, right in cut_pairs(a, b):
            if torch.equal(left.view(torch.uint8), right.view(torch.uint8)):
                continue
            differing += int(_bytes_of(left).ne(_bytes_of(right)).any(dim=1).count_nonzero())
            apart = (_widen(left) - _widen(right)).abs().max().item()
            largest = max(largest, math.inf if math.isnan(apart) else apart)
    if not differing:
        return None
    return Difference(differing=differing, elements=sum(tensor.numel() for tensor in now), largest=largest)


def are_far_apart(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    """Return True if a difference exceeds the largest expected value. Cheaper than a full comparison."""
    return any(_is_far(a, b) for a, b in zip(expected, found, strict=False))


def unravel(at: Place, shape: Sequence[int]) -> list[Place]:
    """torch.unravel_index imports sympy, which takes a second."""
    index = []
    for size in reversed(shape):
        index.append(at % size)
        at = at // size
    return index[::-1]


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


def widen_small(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < 4 else tensor


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()
