from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.biased import change_some
from harness.problems.inputs.declared import list_stress
from harness.problems.inputs.kind import DerivedKind, Inputs, is_continuous
from harness.problems.inputs.tensors import choose_part, draw, draw_near_end, draw_share, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import PRODUCTS

# Powers of two. Squares of the smallest values are still far above the least normal number. Where functions lose digits
# beside 1, as tanh by exponentials does, they still have as many as the tolerance asks for; and so have products in
# float16, in which programs for bfloat16 compute, too.
LEAST, LEAST_OF_FUNCTIONS, LEAST_OF_HALVES = 24, 8, 3
# Of the reference's constants: values go so far below them that adding one and taking the maximum give the same. With
# squares of smaller ones, sums vanish.
BELOW, LEAST_AT_CONSTANTS = 14, 58
# Of rows of matrices that are multiplied, since fast products have errors of the size of the largest row; and before
# variances of products, to which biases add a mean.
LEAST_OF_MIXED = 3
LEAST_CONTRASTED = 24  # an eps of 1e-10 in a legitimate program is far below
SAME_ONE_IN = 4  # other tensors that stay as they are
POWERS = ("most", "any", "near")  # by variants
NEAR = 3  # powers: as values that the given ones never are, but nearly
NEAR_OF_FUNCTIONS = 2  # where a sigmoid by tanh loses values that are larger
LARGEST = {"large": 10, "scale_1e6": 20}  # where the problem declares these
SIGNS = (0.0, 1.0, -1.0, 0.0)  # of larger values; 0.0: their own
SHIFT = 128.0  # exponentials of the larger values overflow, and those of the smaller ones are zero
LOWEST = {torch.float16: 7}  # powers of two times that, of values that a maximum takes
LOWEST_OF_OTHERS = 25
RAISED = {"_softmax", "_log_softmax", "_safe_softmax", "logsumexp", "amin", "min", "cummin"}
LOWERED = {
    "amax", "max", "cummax", "max_pool1d", "max_pool2d_with_indices", "max_pool3d_with_indices", "mkldnn_max_pool2d",
    "mkldnn_max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
}  # fmt: skip


class Scaled(DerivedKind):
    """Each tensor, or secret slices of its first dimension, times a power of two between 1/2 and 2^-24, so that values
    are as small as constants that a program adds, compares with, or counts in. Where larger values are declared, half
    of the tensors are larger, beside smaller ones, and half of these get one sign; but not before several functions,
    since gates that close leave values of which another function loses the digits. Smaller ones keep order and ties.
    """

    name = "scaled"
    is_rarely_seen = makes_terms_alike = True
    whole_one_in: ClassVar[int] = 2

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return bool(self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return not is_continuous(traits)  # else outputs depend on roundings as much as those of the given inputs

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        least = LEAST_OF_FUNCTIONS if traits.use.terms.functions else LEAST
        form = POWERS[self.find_variant(generator.initial_seed()) // self.whole_one_in]
        is_whole = traits.has_weighted_variances or self.changes_all(generator.initial_seed())
        has_mixed_rows = not is_whole and traits.use.has(PRODUCTS)
        has_varied_products = traits.has_weighted_variances and traits.use.terms.multiplied > 0
        largest = _find_largest(traits) if traits.use.terms.functions <= 1 else 0
        for tensor, contract in self.list_allowed(traits, inputs):
            if not has_many_digits(tensor):
                continue
            is_larger = largest > 0 and not contract.is_bounded and bool(draw(4 if form == "near" else 2, generator))
            most = largest if is_larger else least
            if tensor.dtype is torch.float16 or (tensor.dtype is torch.bfloat16 and not is_larger):
                most = min(most, LEAST_OF_HALVES)
            if (has_mixed_rows and tensor.dim() == 2) or (has_varied_products and not is_larger):
                most = min(most, LEAST_OF_MIXED)
            power = _draw_power(most, form, generator)
            if most == LEAST and form != "near" and draw(4, generator):
                power = _go_below_constant(traits, generator) or power
            has_signs = is_larger and not traits.use.terms.functions
            if is_larger and not has_signs and form != "most":
                power = min(power, NEAR_OF_FUNCTIONS)
            factor = 2.0**power if is_larger else 0.5**power
            sign = SIGNS[draw(3 if form == "near" else 4, generator)] if has_signs else 0.0
            change = partial(_scale, factor=factor, sign=sign)
            _change_slices(tensor, change, generator, is_whole=is_whole)
        return inputs


class Contrasted(DerivedKind):
    """Leaves slices as they are, or makes them larger where that is declared, beside much smaller ones: few, any share
    of them, or those on one side of a place. Other tensors with as many slices have the same ones or all others small.
    """

    name = "contrasted"
    is_rarely_seen = makes_terms_alike = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_usable = is_continuous(traits) and traits.keeps_all
        return is_usable and any(one.dim() for one, _ in self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors = [(one, contract) for one, contract in self.list_allowed(traits, inputs) if has_many_digits(one)]
        if not tensors:
            return inputs
        largest = _find_largest(traits)
        first = tensors[draw(len(tensors), generator)][0]
        size = first.size(draw(first.dim(), generator))
        small = _choose_side(size, self.find_variant(generator.initial_seed()), generator)
        for tensor, contract in tensors:
            dims = [dim for dim in range(tensor.dim()) if tensor.size(dim) == size]
            if not dims or not (tensor is first or draw(SAME_ONE_IN, generator)):
                continue
            least = LEAST_OF_HALVES if tensor.element_size() == 2 else LEAST_AT_CONSTANTS
            chosen = small if tensor is first or draw(2, generator) else ~small
            chosen = chosen.view(*(size if dim == dims[-1] else 1 for dim in range(tensor.dim())))
            power = _draw_power(LEAST_CONTRASTED, "most" if draw(4, generator) else "any", generator)
            power = min(_go_below_constant(traits, generator) or power, least)
            change_some(tensor, partial(torch.Tensor.mul_, other=0.5**power), chosen)
            if largest and not contract.is_bounded and tensor.dtype is not torch.float16 and draw(2, generator):
                change_some(tensor, partial(torch.Tensor.mul_, other=2.0**largest), ~chosen)
        return inputs


def _go_below_constant(traits: InputTraits, generator: torch.Generator) -> int:
    """Return the power of two by which values are divided; 0 if the reference has no constants."""
    above = traits.use.above_constants
    return min(above[draw(len(above), generator)] + BELOW, LEAST_AT_CONSTANTS) if above else 0


def _find_largest(traits: InputTraits) -> int:
    return max(LARGEST.get(one, 0) for one in traits.problem.distributions)


def _draw_power(most: int, form: str, generator: torch.Generator) -> int:
    if form == "most":
        return most
    return min(1 + draw(NEAR, generator), most) if form == "near" else 1 + int(most * draw_share(generator))


def _choose_side(size: int, variant: int, generator: torch.Generator) -> Tensor:
    """Choose one slice or few, those before a place, mostly near an end, or any share of them, or all others."""
    places, form = torch.arange(size, device=generator.device), variant // 2
    if form == 0:
        chosen = places == (draw_near_end(size, generator) if draw(2, generator) else draw(size, generator))
    elif form == 1:
        chosen = places <= (draw_near_end(size, generator) if draw(2, generator) else draw(size, generator))
    elif draw(2, generator):
        chosen = choose_part(places, generator, dimension=0)
    else:
        chosen = torch.rand(size, generator=generator, device=generator.device) < draw_share(generator)
    return chosen if variant % 2 else ~chosen


class Shifted(DerivedKind):
    """Moves slices of the first dimension: a softmax is zero beside one much larger element of its row, and its
    logarithm infinite. Values that a maximum takes become smaller, so that one that begins at 0 is wrong.
    """

    name = "shifted"
    is_rarely_seen = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        names = LOWERED if list_stress(traits.problem) else RAISED | LOWERED
        if not traits.use.has(names, on_input=True) or not self.list_allowed(traits, inputs):
            return False
        return is_continuous(traits) or (traits.use.orders_values and not traits.use.converts_to_integers)

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_sizes and not contract.is_bounded

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        shifts = [SHIFT] * traits.use.has(RAISED, on_input=True) + [-SHIFT] * traits.use.has(LOWERED, on_input=True)
        shift = shifts[draw(len(shifts), generator)] if shifts else SHIFT
        is_whole, is_far = self.changes_all(generator.initial_seed()), shift < 0 and draw(3, generator)
        for tensor, _ in self.list_allowed(traits, inputs):
            if has_many_digits(tensor):
                lowest = LOWEST.get(tensor.dtype, LOWEST_OF_OTHERS) if is_far else 0
                far = lowest if draw(4, generator) else draw(lowest + 1, generator)
                change = partial(torch.Tensor.add_, other=shift * 2.0**far)
                _change_slices(tensor, change, generator, is_whole=is_whole)
        return inputs


def _scale(part: Tensor, *, factor: float, sign: float) -> None:
    """With a `sign`, all values get it."""
    if sign:
        part.abs_().mul_(sign)
    part.mul_(factor)


def _change_slices(
    tensor: Tensor, change: Callable[[Tensor], object], generator: torch.Generator, *, is_whole: bool
) -> None:
    is_whole |= tensor.dim() < 2
    change_some(tensor, change, None if is_whole else choose_part(tensor, generator, dimension=0))
