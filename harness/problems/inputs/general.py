"""Takes away what values have in common though no one stated it: that one mark is in each row, that marks come first,
that numbers are whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.problems.inputs.altered import FLOATS, find_marks, flip_marks, may_alter
from harness.problems.inputs.kind import DerivedKind, Inputs
from harness.problems.inputs.tensors import is_dense, split_for_device
from harness.problems.inputs.traits import InputTraits
from harness.tensors.trees import list_leaves, map_leaves

LEAST_FACTOR = 0.5  # of whole numbers, up to 1 more


class General(DerivedKind):
    """Only for values that `get_inputs` computes from draws: independent marks are general already."""

    name = "general"

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return may_alter(traits.use) and any(_list_whole(traits, inputs))

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        are_whole = _list_whole(traits, inputs)
        changed: Inputs = map_leaves(inputs, lambda leaf: _generalise(leaf, generator) if next(are_whole) else leaf)
        return changed


def _list_whole(traits: InputTraits, inputs: Sequence[Any]) -> Iterator[bool]:
    """Yield for each value whether it is a tensor to change."""
    tensors = 0
    for place, leaf in enumerate(list_leaves(inputs)):
        is_drawn = place not in traits.constants
        is_structured = isinstance(leaf, Tensor) and tensors in traits.structured
        tensors += isinstance(leaf, Tensor)
        yield isinstance(leaf, Tensor) and is_drawn and _can_change(leaf, is_structured=is_structured)


def _can_change(tensor: Tensor, *, is_structured: bool) -> bool:
    if tensor.is_meta or not is_dense(tensor) or tensor.numel() < 2 or tensor.dtype not in (*FLOATS, torch.bool):
        return False
    if tensor.dtype is not torch.bool and not all(
        bool((part == part.round()).all()) for part in split_for_device(tensor)
    ):
        return False
    return is_structured or find_marks(tensor) is None


def _generalise(given: Tensor, generator: torch.Generator) -> Tensor:
    marks = find_marks(given)
    if marks is not None:
        return flip_marks(given, marks, generator)
    changed = given.clone()
    for part in split_for_device(changed):
        part.mul_(torch.rand(part.shape, generator=generator, device=part.device).add_(LEAST_FACTOR).to(part.dtype))
    return changed
