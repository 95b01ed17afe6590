"""Defines a kind of inputs: when it applies to a problem, how it changes inputs, and how outputs are compared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.draws import ChangedDraws
from harness.problems.inputs.tensors import PATTERNS, complex_parts, count_change_bytes, list_changeable
from harness.problems.inputs.traits import InputTraits

Inputs = tuple[Any, ...]
DISCRETE = ("mask", "integer", "index", "one_hot", "permutation", "counts", "probabilities")


class InputKind:
    """A kind that problems declare.

    With `is_stress`, `mixed` writes such values into given inputs. With `is_exact`, outputs must equal a countable
    truth. With `by_peak`, errors are relative to the largest output. With `makes_terms_alike`, most terms of a sum may
    be nearly equal. With `has_ties` only outputs are compared that do not depend on the order of equal values. With
    `keeps_equal`, roundings that widen what is allowed leave equal values equal. With `has_usual_sizes`, errors are as
    small as for given inputs, but with `biases_sums` the roundings of long sums may all err in one direction. With
    `is_of_draws`, the change precedes the distribution of a case.
    """

    name: str
    is_stress: bool = False
    is_exact: bool = False
    by_peak: ClassVar[bool] = False
    makes_terms_alike: ClassVar[bool] = False
    has_ties: ClassVar[bool] = False
    keeps_equal: bool = False
    has_usual_sizes: ClassVar[bool] = False
    biases_sums: ClassVar[bool] = False
    changes_layout: ClassVar[bool] = False
    changes_gradients: ClassVar[bool] = False
    is_of_draws: ClassVar[bool] = False

    def watch_draws(self, seed: int, traits: InputTraits | None) -> AbstractContextManager[object]:
        """Return a context for `get_inputs`."""
        return nullcontext()

    def changes_any_draws(self, traits: InputTraits) -> bool:
        return False

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        return inputs

    def explain(self, traits: InputTraits, inputs: Sequence[Any]) -> str:
        """Name the contracts that permit these inputs; "" if the problem declares the kind."""
        return ""

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return 0

    def count_calls(self, *, is_small: bool) -> int:
        return 1

    def take_variant(self, seed: int) -> InputKind:
        """Return how outputs for the inputs of this seed are compared."""
        return self


class Given(InputKind):
    name = "as_given"
    has_usual_sizes = True


class Rounded(InputKind):
    """Given values, of which one tensor has few digits."""

    name = "rounded"


GIVEN, ROUNDED = Given(), Rounded()


CALLS = 2  # of large problems


class DerivedKind(InputKind):
    """Legal inputs near the given ones, which apply without a declaration.

    The calls of an evaluation take the `variants` of a kind in turn, in secret order; of a small problem each at least
    once. One in `whole_one_in` of them changes whole inputs, the others secret parts. With `is_combined`, half of the
    calls have other masks and indices as well. With `keeps_converted`, arguments that the reference converts to
    integers stay as they are.
    """

    variants: ClassVar[int] = 6
    whole_one_in: ClassVar[int] = 6
    is_combined: ClassVar[bool] = True
    is_timed: ClassVar[bool] = True
    keeps_converted: ClassVar[bool] = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        raise NotImplementedError

    def count_calls(self, *, is_small: bool) -> int:
        return self.variants if is_small else CALLS

    def scales_values(self, traits: InputTraits) -> bool:
        """True if only outputs that one rounding of the inputs moves little can be compared."""
        return True

    def find_variant(self, seed: int) -> int:
        return random.Random(f"{self.name} {seed}").randrange(self.variants)

    def changes_all(self, seed: int) -> bool:
        """True if whole inputs change, not only secret elements or slices."""
        return self.find_variant(seed) % self.whole_one_in == 0

    def allows(self, contract: InputContract) -> bool:
        """True if changed values are as the contract says."""
        return contract.has_free_sizes

    def may_change(self, contract: InputContract) -> bool:
        return self.allows(contract) and not (self.keeps_converted and contract.is_converted)

    def watch_draws(self, seed: int, traits: InputTraits | None) -> AbstractContextManager[object]:
        if traits is None or not self.changes_any_draws(traits):
            return nullcontext()
        return ChangedDraws(seed, traits.redrawn, partial(self.change_draw, traits))

    def changes_any_draws(self, traits: InputTraits) -> bool:
        return any(self.allows_draw(one.contract) for one in traits.redrawn)

    def allows_draw(self, contract: InputContract) -> bool:
        return False

    def change_draw(
        self, traits: InputTraits, values: Tensor, contract: InputContract, generator: torch.Generator
    ) -> None:
        """Change a draw in `get_inputs` in place."""
        if values.dtype in PATTERNS and self.allows_draw(contract):
            self.change_all([(values, contract)], traits, generator)

    def change_all(
        self, tensors: Sequence[tuple[Tensor, InputContract]], traits: InputTraits, generator: torch.Generator
    ) -> None:
        raise NotImplementedError

    def may_apply(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return self.changes_any_draws(traits) or bool(self.list_allowed(traits, inputs))

    def list_allowed(self, traits: InputTraits, inputs: Sequence[Any]) -> list[tuple[Tensor, InputContract]]:
        return [
            (tensor, contract)
            for leaf, contract in traits.pair(inputs) if self.may_change(contract)
            for tensor in (*list_changeable(leaf), *(complex_parts(leaf) if contract.is_stated else ()))
        ]  # fmt: skip

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        for tensor, contract in self.list_allowed(traits, inputs):
            self.change_tensor(tensor, contract, generator)
        return inputs

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        """Change one floating tensor in place."""
        raise NotImplementedError

    def explain(self, traits: InputTraits, inputs: Sequence[Any]) -> str:
        contracts = [contract for _, contract in traits.pair(inputs)]
        changed = [
            one
            for one in contracts
            if self.may_change(one)
            or (one.is_redrawn and self.changes_any_draws(traits))
            or (self.is_combined and one.is_stated and one.kind in DISCRETE)
        ]
        return "; ".join(sorted({one.explanation for one in changed if one.argument}))

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return count_change_bytes(inputs)


STEPS = {"round", "floor", "ceil", "trunc", "frac", "fmod", "remainder", "floor_divide", "sign", "sgn", "heaviside"}


def may_be_rounded(traits: InputTraits) -> bool:
    """True if equal values, zeros and exact halves do not make legitimate programs differ, as gradients do there."""
    has_steps = traits.problem.backward or traits.use.has(STEPS)
    return is_continuous(traits) and not has_steps and not any(call.is_narrow for call in traits.use.calls)


def is_continuous(traits: InputTraits) -> bool:
    """True if small changes of floating inputs change floating outputs little."""
    return is_smooth(traits) and not traits.use.converts_to_integers


def is_smooth(traits: InputTraits) -> bool:
    """True if small changes of floating inputs that do not become integers change floating outputs little."""
    return traits.returns_floats and not traits.use.orders_values
