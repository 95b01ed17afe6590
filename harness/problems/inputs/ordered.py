from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, Inputs
from harness.problems.inputs.tensors import draw, has_many_digits, split_for_device
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import ORDERING

STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones
CROWDED_ONE_IN = 2
CROWDED_BY = 2.0**-12  # a power of two: no digit is lost


class Ordered(DerivedKind):
    """Gives whole inputs the opposite order, or enlarges distances above a random element: equal values stay equal, and
    different ones come closer only where the reference orders its inputs themselves, without rounding before.
    """

    name = "ordered"
    whole_one_in = 3
    is_rarely_seen = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        use = traits.use
        return use.orders_values and not use.converts_to_integers and bool(self.list_allowed(traits, inputs))

    def allows(self, contract: InputContract) -> bool:
        """Values between two bounds can be reflected."""
        is_movable = contract.kind == "real" or not contract.is_stated
        return is_movable and (contract.low is None) == (contract.high is None)

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        super().change(inputs, traits, generator)
        if not traits.use.has(ORDERING, on_input=True) or draw(CROWDED_ONE_IN, generator):
            return inputs
        for tensor, contract in self.list_allowed(traits, inputs):
            if not contract.is_bounded and has_many_digits(tensor):
                _crowd(tensor)
        return inputs

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        if not has_many_digits(tensor):
            return
        if contract.is_bounded or self.changes_all(generator.initial_seed()):
            tensor.neg_().add_((contract.low or 0) + (contract.high or 0))  # type: ignore[operator, arg-type]
            return
        place = torch.unravel_index(torch.tensor(draw(tensor.numel(), generator)), tensor.shape)
        least = tensor[tuple(map(int, place))].clone()
        for part in split_for_device(tensor):
            part.add_((part - least).clamp_(min=0), alpha=STRETCHED_BY)


def _crowd(tensor: Tensor) -> None:
    """Make distances smaller, unless small values would lose digits."""
    for part in split_for_device(tensor):
        if not torch.equal(part * CROWDED_BY / CROWDED_BY, part):
            return
    tensor.mul_(CROWDED_BY)
