"""Whether tensors hold the same bits, and how they differ where not: for repeated calls and for kept weights, where
nothing but equality is asked. Being near enough to the truth is the part of `harness.judge.compare`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


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
    """None where all bits are equal."""
    pairs = [(a, b) for a, b in zip(now, before, strict=True) if not has_same_bits(a, b)]
    if not pairs:
        return None
    changed = [_bytes_of(a).ne(_bytes_of(b)).any(dim=1) for a, b in pairs]
    apart = [(_widen(a) - _widen(b)).abs().max().item() for a, b in pairs]
    return Difference(
        differing=sum(int(flags.sum()) for flags in changed),
        elements=sum(tensor.numel() for tensor in now),
        largest=max(math.inf if math.isnan(value) else value for value in apart),
    )


def has_same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits: NaN equals itself, and 0.0 differs from -0.0."""
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def are_far_apart(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    """Whether some floating value is off by more than the largest that was expected: so wrong that nobody need look
    closer, which takes far longer. False also where that cannot be said."""
    return any(_is_far(a, b) for a, b in zip(expected, found, strict=False))


def _is_far(expected: Tensor, found: Tensor) -> bool:
    alike = (expected.shape, expected.dtype, expected.device) == (found.shape, found.dtype, found.device)
    if not alike or not expected.is_floating_point() or not expected.numel():
        return False
    return bool((found - expected).abs().max() > expected.abs().max())


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8).view(tensor.numel(), -1)


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()
