from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.biased import change_some
from harness.problems.inputs.kind import DerivedKind, Inputs, is_continuous
from harness.problems.inputs.tensors import choose_part, draw, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.inputs.varied import may_have_any_values

SHIFT = 128.0  # exponentials of the larger values overflow, and those of the smaller ones are zero
RAISED = {"_softmax", "_log_softmax", "_safe_softmax", "logsumexp", "amin", "min", "cummin"}
LOWERED = {
    "amax", "max", "cummax", "max_pool1d", "max_pool2d_with_indices", "max_pool3d_with_indices", "mkldnn_max_pool2d",
    "mkldnn_max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
}  # fmt: skip


class Shifted(DerivedKind):
    """Moves slices of the first dimension: a softmax is zero beside one much larger element of its row, and its
    logarithm infinite. Values that a maximum takes become smaller, so that one that begins at 0 is wrong.
    """

    name = "shifted"
    is_rarely_seen = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if not may_have_any_values(self, traits, inputs) or not traits.use.has(RAISED | LOWERED, on_input=True):
            return False
        return is_continuous(traits) or (traits.use.orders_values and not traits.use.converts_to_integers)

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_sizes and not contract.is_bounded

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        shifts = [SHIFT] * traits.use.has(RAISED, on_input=True) + [-SHIFT] * traits.use.has(LOWERED, on_input=True)
        shift = shifts[draw(len(shifts), generator)] if shifts else SHIFT
        for tensor, _ in self.list_allowed(traits, inputs):
            self._shift(tensor, shift, generator)
        return inputs

    def _shift(self, tensor: Tensor, shift: float, generator: torch.Generator) -> None:
        if not has_many_digits(tensor):
            return
        is_whole = tensor.dim() < 2 or self.changes_all(generator.initial_seed())
        chosen = None if is_whole else choose_part(tensor, generator, dimension=0)
        change_some(tensor, lambda part: part.add_(shift), chosen)
