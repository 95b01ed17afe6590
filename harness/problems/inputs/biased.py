from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, is_continuous
from harness.problems.inputs.tensors import (
    PATTERNS,
    choose_part,
    count_part,
    find_inexact,
    split_for_device,
    split_parts,
)
from harness.problems.inputs.traits import InputTraits

# Each of 256 threads that form a longer sum adds so many of its terms that float32 sums lose as much as the roundings
# to narrower formats that these values reveal.
MOST_TERMS = 1 << 17


class Biased(DerivedKind):
    """Changes each value by less than 1 % (16-bit formats: 7 %)."""

    name = "biased"
    changes_gradients = True
    variants = whole_one_in = 2

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return is_continuous(traits) and traits.use.most_terms <= MOST_TERMS and bool(self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_digits and not contract.distinct

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        """Equal values stay equal in tensors with structure: these change as a whole."""
        is_whole = not contract.has_free_sizes or self.changes_all(generator.initial_seed())
        change_some(tensor, _bias, None if is_whole or tensor.dim() < 2 else choose_part(tensor, generator))


def change_some(tensor: Tensor, change: Callable[[Tensor], object], chosen: Tensor | None) -> None:
    if chosen is None:
        change(tensor)
        return
    elements = count_part(tensor)
    masks = split_parts(chosen.expand_as(tensor), elements)
    for part, mask in zip(split_parts(tensor, elements), masks, strict=True):
        changed = part.clone()
        change(changed)
        part.copy_(torch.where(mask, changed, part))


def _bias(tensor: Tensor) -> None:
    pattern = PATTERNS[tensor.dtype]
    for part in split_for_device(tensor):
        bits = part.view(pattern.integer)
        shifted = (bits & pattern.digits) >> pattern.right << pattern.left
        biased = (bits & ~pattern.digits) | pattern.fixed | shifted
        bits.copy_(torch.where(find_inexact(part), biased, bits))
