"""Defines a kind of inputs: when it applies to a problem, how it changes inputs, and how outputs are compared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.problems.inputs.tensors import count_change_bytes, list_changeable
from harness.problems.inputs.traits import InputTraits

Inputs = tuple[Any, ...]


class InputKind:
    """A kind that problems declare.

    With `is_stress`, `mixed` writes such values into given inputs. With `is_exact`, outputs must equal a countable
    truth. With `by_peak`, errors are relative to the largest output. With `is_of_draws`, the change precedes the
    distribution of a case.
    """

    name: str
    is_stress: bool = False
    is_exact: bool = False
    by_peak: ClassVar[bool] = False
    changes_layout: ClassVar[bool] = False
    changes_gradients: ClassVar[bool] = False
    is_of_draws: ClassVar[bool] = False

    def watch_draws(self, seed: int) -> AbstractContextManager[object]:
        return nullcontext()

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        return inputs

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return 0

    def count_calls(self, *, is_small: bool) -> int:
        return 1


class Given(InputKind):
    name = "as_given"


GIVEN = Given()


class DerivedKind(InputKind):
    """Legal inputs near the given ones, which apply without a declaration.

    With `keeps_structure`, only tensors with independently drawn elements change. With `allows_for_rounding`, only
    outputs that one rounding of the inputs moves little are compared. One call in `whole_one_in` changes whole inputs,
    the others secret parts. With `is_redrawn`, small problems get several calls with different values.
    """

    keeps_structure: ClassVar[bool] = False
    allows_for_rounding: ClassVar[bool] = True
    whole_one_in: ClassVar[int] = 6
    is_redrawn: ClassVar[bool] = True
    is_rarely_seen: ClassVar[bool] = False
    is_timed: ClassVar[bool] = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        raise NotImplementedError

    def changes_all(self, seed: int) -> bool:
        """True if whole inputs change, not only secret elements or slices."""
        return random.Random(f"{self.name} {seed}").randrange(self.whole_one_in) == 0

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        for tensor in list_changeable(traits.list_free(inputs) if self.keeps_structure else inputs):
            self.change_tensor(tensor, generator)
        return inputs

    def change_tensor(self, tensor: Tensor, generator: torch.Generator) -> None:
        """Change one floating tensor in place."""
        raise NotImplementedError

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return count_change_bytes(inputs)


def takes_floats(traits: InputTraits, inputs: Sequence[Any]) -> bool:
    """True if there are floating inputs, and none becomes an index."""
    return bool(list_changeable(inputs)) and not traits.use.converts_to_integers


def is_continuous(traits: InputTraits, inputs: Sequence[Any]) -> bool:
    """True if small changes of floating inputs change floating outputs little."""
    return traits.returns_floats and not traits.use.orders_values and takes_floats(traits, inputs)
