from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.kind import DerivedKind, is_continuous
from harness.problems.inputs.tensors import draw_share, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.inputs.varied import may_have_any_values


class Smaller(DerivedKind):
    """Each tensor times one factor between 1/3 and 3/4, so that all its values are far below the largest given ones."""

    name = "smaller"

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return may_have_any_values(self, traits, inputs) and is_continuous(traits)

    def scales_values(self, traits: InputTraits) -> bool:
        return False  # outputs depend on roundings as much as those of the given inputs, which are compared too

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        if has_many_digits(tensor):
            tensor.mul_(0.75 - (0.75 - 1 / 3) * draw_share(generator))
