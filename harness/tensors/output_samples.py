"""Samples of large outputs at secret positions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, TensorSpec
from harness.tensors.outputs import FlatOutputs
from harness.tensors.slices import cut_stretch

STRETCHES, STRETCH_ELEMENTS = 64, 16 << 10
LEAST_BYTES = 4 << 20  # smaller outputs are copied whole


@dataclass(frozen=True, slots=True)
class Sample:
    firsts: tuple[tuple[int, ...], ...]

    def take(self, output: int, tensor: Tensor) -> Tensor:
        end = tensor.numel()
        parts = [cut_stretch(tensor, first, min(first + STRETCH_ELEMENTS, end)) for first in self.firsts[output]]
        return torch.cat(parts) if parts else tensor.new_empty(0)

    def take_all(self, outputs: FlatOutputs) -> FlatOutputs:
        return replace(outputs, tensors=tuple(map(self.take, count(), outputs.tensors)))


def choose_sample(specs: Sequence[TensorSpec], source: random.Random) -> Sample | None:
    """Include each output's end, where kernels fail most. Return None for small outputs."""
    counts = [prod(spec.shape) for spec in specs]
    if sum(count * ITEM_BYTES[spec.dtype] for count, spec in zip(counts, specs, strict=True)) <= LEAST_BYTES:
        return None
    return Sample(tuple(_choose_firsts(count, source) for count in counts))


def _choose_firsts(count: int, source: random.Random) -> tuple[int, ...]:
    stretches = -(-count // STRETCH_ELEMENTS)
    chosen = source.sample(range(stretches), min(stretches, STRETCHES))
    last = stretches - 1
    if stretches and last not in chosen:
        chosen[0] = last
    return tuple(stretch * STRETCH_ELEMENTS for stretch in sorted(chosen))
