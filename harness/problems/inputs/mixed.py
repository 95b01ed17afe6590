from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.problems.inputs.distributions import Distribution, count_refill_bytes, list_stress, widen
from harness.problems.inputs.kind import InputKind, Inputs
from harness.problems.inputs.parts import choose_part, floating_tensors, split_parts
from harness.problems.inputs.traits import InputTraits

CALLS, SMALL_CALLS = 2, 8


class Mixed(InputKind):
    """Detects candidates that recognise stress values by a sample."""

    name = "mixed"
    text = "as given, with elements or slices of declared stress distributions at secret positions"
    changes_gradients = True

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        for distribution in list_stress(traits.problem):
            for tensor in floating_tensors(inputs):
                mix(tensor, distribution, generator)
        return inputs

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return count_refill_bytes(inputs)

    def count_calls(self, *, is_small: bool) -> int:
        return SMALL_CALLS if is_small else CALLS


def mix(tensor: Tensor, distribution: Distribution, generator: torch.Generator) -> None:
    """Refill random elements or slices in place, so that sampling the inputs does not reveal them."""
    mask = choose_part(tensor, generator).expand_as(tensor)
    for part, chosen in zip(split_parts(tensor), split_parts(mask), strict=True):
        part.copy_(torch.where(chosen, distribution.refill(part, generator), widen(part)))
