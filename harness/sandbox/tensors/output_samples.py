"""Samples of large outputs at secret positions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, TensorSpec
from harness.sandbox.tensors.host_copies import HOST
from harness.sandbox.tensors.outputs import cut_stretch

STRETCHES, STRETCH_ELEMENTS = 64, 16 << 10
LEAST_BYTES = 4 << 20  # smaller outputs are copied whole


@dataclass(frozen=True, slots=True)
class Sample:
    """First indices of each output's stretches."""

    firsts: tuple[tuple[int, ...], ...]

    def take(self, output: int, tensor: Tensor) -> Tensor:
        """Concatenated in host memory."""
        count = tensor.numel()
        parts = [
            cut_stretch(tensor, first, min(first + STRETCH_ELEMENTS, count)).to(HOST) for first in self.firsts[output]
        ]
        return torch.cat(parts) if parts else torch.empty(0, dtype=tensor.dtype)


def choose_sample(specs: Sequence[TensorSpec], source: random.Random) -> Sample | None:
    """Includes each output's end, where kernels fail most. None: small outputs."""
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
