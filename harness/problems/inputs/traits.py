"""Describes a problem's inputs, to select the kinds of inputs for its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from harness.domain import Problem
from harness.problems.inputs.tensors import list_changeable
from harness.problems.operators import NO_USE, OperatorUse
from harness.tensors.trees import list_tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTraits:
    """If not `is_known`, only `problem` is valid. `use` lists operators that the reference calls.

    `structured` are positions of input tensors whose elements are not drawn independently. `constants` are positions,
    among all values, of those equal under two seeds. `fewest_drawn` is the number of elements of the smallest
    `torch.rand` (0 without one). `has_state` means that the reference has weights or calls change its state.
    """

    problem: Problem
    is_known: bool = False
    use: OperatorUse = NO_USE
    structured: frozenset[int] = frozenset()
    constants: tuple[int, ...] = ()
    draws_integers: bool = False
    fewest_drawn: int = 0
    returns_floats: bool = False
    has_state: bool = False

    def list_free(self, inputs: Sequence[Any]) -> list[Tensor]:
        return [tensor for at, tensor in enumerate(list_tensors(inputs)) if at not in self.structured]

    def has_free_floats(self, inputs: Sequence[Any]) -> bool:
        return bool(list_changeable(self.list_free(inputs)))
