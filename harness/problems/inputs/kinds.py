"""Kinds of inputs derived from given ones, and the list of all kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract, Problem, UsageError
from harness.problems.discovery import DISTRIBUTION_NAMES
from harness.problems.inputs.biased import Biased, change_some
from harness.problems.inputs.declared import DISTRIBUTIONS, Mixed, Padded, list_stress
from harness.problems.inputs.general import General
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind, Inputs, is_continuous
from harness.problems.inputs.rare import Rare
from harness.problems.inputs.tensors import (
    PATTERNS,
    choose_part,
    draw,
    draw_share,
    has_many_digits,
    is_dense,
    split_for_device,
)
from harness.problems.inputs.traits import InputTraits
from harness.problems.inputs.varied import Signed, Varied, may_have_any_values

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


class Smaller(DerivedKind):
    """Each tensor times one factor between 1/2 and 1, so that all its values are below the largest given ones."""

    name = "smaller"

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return may_have_any_values(self, traits, inputs) and is_continuous(traits)

    def scales_values(self, traits: InputTraits) -> bool:
        return False  # outputs depend on roundings as much as those of the given inputs, which are compared too

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        if has_many_digits(tensor):
            tensor.mul_(2.0 ** -draw_share(generator))


STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones


class Ordered(DerivedKind):
    """Gives whole inputs the opposite order, or enlarges distances above a random element: equal values stay equal, and
    different ones do not come closer."""

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


# Of the largest magnitude: far above the constants that programs add to denominators, and so small that all elements
# together are less than those that keep their values, if possible.
NEARLY_ZERO = (1e-6, 1e-4)
LEAST_ELEMENTS = 1024
LARGEST_SHARE = 16  # at most one in so many elements is scattered, or in the stretch


class Sparse(DerivedKind):
    """Changes one tensor, since a product of several that are nearly zero has nothing but roundings. Excludes
    references with weights, which may make nearly constant values of these inputs: legitimate programs compute their
    variance with different accuracy.
    """

    name = "sparse"
    by_peak = True
    is_timed = False  # timed outputs are compared element by element

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if traits.has_state or traits.problem.backward:
            return False
        return is_continuous(traits) and bool(self.list_allowed(traits, inputs))

    def allows(self, contract: InputContract) -> bool:
        low, high = contract.low or 0, contract.high or 0
        return contract.is_free and low <= 0 <= high  # type: ignore[operator]

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors = [tensor for tensor, _ in self.list_allowed(traits, inputs)]
        shares = [(tensor, share) for tensor in tensors if (share := _find_share(tensor)) is not None]
        if shares:
            _reduce_most(*shares[draw(len(shares), generator)], generator)
        return inputs


def _reduce_most(tensor: Tensor, share: float, generator: torch.Generator) -> None:
    count = tensor.numel()
    flat = tensor.as_strided((count,), (1,))
    few = min(count // LARGEST_SHARE, PATTERNS[tensor.dtype].few)
    places = torch.randint(count, (few,), generator=generator, device=tensor.device)
    length = 1 + draw(few, generator)
    first = draw(count - length + 1, generator)
    scattered, stretch = flat[places], flat[first : first + length].clone()
    flat.mul_(share)
    flat[first : first + length] = stretch
    flat[places] = scattered


def _find_share(tensor: Tensor) -> float | None:
    """Return what is left of the other elements; None if no value is near zero, or if most have few digits. (Sums of
    one repeated value would have systematic errors.)
    """
    if not is_dense(tensor) or tensor.numel() < LEAST_ELEMENTS or not has_many_digits(tensor):
        return None
    low, high = tensor.new_full((), math.inf), tensor.new_zeros(())
    for part in split_for_device(tensor):
        sizes = part.abs()
        torch.minimum(low, sizes.min(), out=low)
        torch.maximum(high, sizes.max(), out=high)
    least, most = float(low), float(high)
    lowest, highest = NEARLY_ZERO
    share = max(lowest, min(highest, PATTERNS[tensor.dtype].few / (4 * tensor.numel())))
    return share if math.isfinite(most) and least <= share * most else None


MIXED = Mixed()
DECLARED: tuple[InputKind, ...] = (GIVEN, *DISTRIBUTIONS, Padded(), MIXED)
DERIVED: tuple[DerivedKind, ...] = (
    Ordered(), Biased(), Varied(), Signed(), Smaller(), Shifted(), Sparse(), General(), Rare(),
)  # fmt: skip
_BY_NAME: dict[str, InputKind] = {kind.name: kind for kind in (*DECLARED, *DERIVED)}


def find_kind(name: str) -> InputKind:
    if name not in _BY_NAME:
        raise UsageError(f"unknown distribution {name!r}; choose among {', '.join(DISTRIBUTION_NAMES)}")
    return _BY_NAME[name]


def list_declared(problem: Problem) -> tuple[InputKind, ...]:
    declared = [find_kind(name) for name in problem.distributions if name != GIVEN.name]
    return (*declared, MIXED) if list_stress(problem) else tuple(declared)


def list_derived(traits: InputTraits, inputs: Sequence[Any]) -> tuple[DerivedKind, ...]:
    return tuple(kind for kind in DERIVED if traits.is_known and kind.applies(traits, inputs))
