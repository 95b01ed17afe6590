"""Changes inputs whose values the reference orders: equal values stay equal, and different ones do not come closer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.problems.inputs.kind import DerivedKind, takes_floats
from harness.problems.inputs.tensors import draw, has_many_digits, split_for_device
from harness.problems.inputs.traits import InputTraits

STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones


class Negated(DerivedKind):
    name = "negated"
    is_redrawn = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return traits.use.orders_values and not traits.use.restricts_values and takes_floats(traits, inputs)

    def change_tensor(self, tensor: Tensor, generator: torch.Generator) -> None:
        if has_many_digits(tensor):
            tensor.neg_()


class Stretched(Negated):
    name = "stretched"
    is_redrawn = True

    def change_tensor(self, tensor: Tensor, generator: torch.Generator) -> None:
        if not has_many_digits(tensor):
            return
        place = torch.unravel_index(torch.tensor(draw(tensor.numel(), generator)), tensor.shape)
        least = tensor[tuple(map(int, place))].clone()
        for part in split_for_device(tensor):
            part.add_((part - least).clamp_(min=0), alpha=STRETCHED_BY)
