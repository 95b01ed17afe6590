"""Describes a problem's inputs; this decides which kinds of inputs its candidates are called with."""

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
    """`is_known`: False: only `problem` is. `use`: operators that the reference calls.

    `structured`: positions of input tensors whose elements are not drawn independently; `constants`: positions, among
    all values, of those that are equal under two seeds; `draws_integers`: True if `get_inputs` calls `torch.randint`;
    `fewest_drawn`: number of elements of its smallest `torch.rand` (0: none); `has_state`: True if the reference has
    weights, or if calls change its state.
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
        """Input tensors without structure."""
        return [tensor for at, tensor in enumerate(list_tensors(inputs)) if at not in self.structured]

    def has_free_floats(self, inputs: Sequence[Any]) -> bool:
        return bool(list_changeable(self.list_free(inputs)))
