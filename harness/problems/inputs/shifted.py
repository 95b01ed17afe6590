from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.problems.inputs.biased import change_some
from harness.problems.inputs.kind import DerivedKind, is_continuous, takes_floats
from harness.problems.inputs.tensors import choose_part, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.inputs.varied import may_have_any_values

SHIFT = 128.0  # exponentials of the larger values overflow


class Shifted(DerivedKind):
    """Moves slices of the first dimension: a softmax is zero beside one much larger element of its row, and its
    logarithm infinite.
    """

    name = "shifted"
    keeps_structure = True
    shift: ClassVar[float] = SHIFT
    operators: ClassVar[Collection[str]] = {
        "_softmax", "_log_softmax", "_safe_softmax", "logsumexp", "amin", "min", "cummin",
    }  # fmt: skip

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if not may_have_any_values(traits, inputs) or not traits.use.has(self.operators, on_input=True):
            return False
        return is_continuous(traits, inputs) or (traits.use.orders_values and takes_floats(traits, inputs))

    def change_tensor(self, tensor: Tensor, generator: torch.Generator) -> None:
        if not has_many_digits(tensor):
            return
        is_whole = tensor.dim() < 2 or self.changes_all(generator.initial_seed())
        chosen = None if is_whole else choose_part(tensor, generator, dimension=0)
        change_some(tensor, lambda part: part.add_(self.shift), chosen)


class Lowered(Shifted):
    name = "lowered"
    shift = -SHIFT
    operators: ClassVar[Collection[str]] = {
        "amax", "max", "cummax", "max_pool1d", "max_pool2d_with_indices", "max_pool3d_with_indices",
        "mkldnn_max_pool2d", "mkldnn_max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
        "fractional_max_pool2d", "fractional_max_pool3d",
    }  # fmt: skip
