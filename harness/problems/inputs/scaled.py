import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.biased import change_some
from harness.problems.inputs.kind import DerivedKind, Inputs, is_continuous, is_smooth
from harness.problems.inputs.tensors import (
    choose_part,
    draw,
    draw_long,
    draw_share,
    find_largest,
    has_many_digits,
    is_square,
    list_changeable,
    mark_path,
    view_along,
)
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import DIVIDING, PRODUCTS
from harness.tensors.values import list_tensors, memory_of

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
LEAST_CONTRASTED, FAR_CONTRASTED = 24, 46  # an eps of 1e-10 before a division is far below the first
KEPT, NEGLIGIBLE = 22, 17  # terms that float32 still adds to one; by so many powers less, a sum of them is negligible
SIDES, PATH = 2, 3  # variants below 2; that of matrices. The others keep one slice
NEAR_AN_END = 0.5
OTHERS = ("stay", "own", "same", "opposite")
POWERS = ("most", "any", "near")  # by variants
NEAR = 2  # powers: as values that the given ones never are, but nearly
NEAR_OF_FUNCTIONS = 2  # where a sigmoid by tanh loses values that are larger
SMALLER = "scale_1e-12"  # where the problem declares it, programs for bfloat16 do not compute in float16
LARGEST = {"large": 10, "scale_1e6": 20}  # where the problem declares these
LARGEST_OF_GRADIENTS = 10  # all that follows is linear in them
SIGNS = (0.0, 1.0, -1.0, 0.0)  # of larger values; 0.0: their own
SHIFT = 128.0  # exponentials of the larger values overflow, and those of the smaller ones are zero
FURTHER = 1  # power of two: also of values that a temperature divides
LOWEST = {torch.float16: 7}  # powers of two times that, of values that a maximum takes
LOWEST_OF_OTHERS = 25
BESIDE_A_MASK = {2: (4, 7), 4: (14, 20)}  # least and most powers of two, by bytes of a value: -1e9 is far below
LOGARITHMS = {"_log_softmax"}  # legitimate programs return -inf far below the largest value of a row
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
    changes_gradients = True
    makes_terms_alike = True
    whole_one_in: ClassVar[int] = 2
    keeps_converted = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return self.may_apply(traits, inputs)

    def scales_values(self, traits: InputTraits) -> bool:
        """Else outputs depend on roundings as much as those of the given inputs."""
        return self.changes_any_draws(traits) or not is_continuous(traits)

    def allows_draw(self, contract: InputContract) -> bool:
        """Smaller values stay in a range around zero."""
        return contract.low is None or float(contract.low) <= 0

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors = self.list_allowed(traits, inputs)
        gradients = len(list_changeable(inputs[-1])) if traits.problem.backward else 0
        self.change_all(tensors, traits, generator, first_gradient=len(tensors) - gradients)
        return inputs

    def change_all(
        self,
        tensors: Sequence[tuple[Tensor, InputContract]],
        traits: InputTraits,
        generator: torch.Generator,
        *,
        first_gradient: int = sys.maxsize,
    ) -> None:
        least = LEAST_OF_FUNCTIONS if traits.use.terms.functions else LEAST
        form = POWERS[self.find_variant(generator.initial_seed()) // self.whole_one_in]
        is_whole = traits.has_weighted_variances or self.changes_all(generator.initial_seed())
        has_mixed_rows = not is_whole and traits.use.has(PRODUCTS)
        has_small_halves = SMALLER in traits.problem.distributions
        largest = _find_largest_power(traits) if traits.use.terms.functions <= 1 else 0
        places = [place for place, (tensor, _) in enumerate(tensors) if has_many_digits(tensor)]
        if len(places) > 1:  # at times one argument stays beside all others
            may_stay = [place for place in places if place < first_gradient]
            kept = draw(len(may_stay) + 1, generator)
            places = [place for place in places if place not in may_stay[kept : kept + 1]]
        for place in places:
            tensor, contract = tensors[place]
            is_gradient = place >= first_gradient
            highest, lowest = (LARGEST_OF_GRADIENTS, LEAST) if is_gradient else (largest, least)
            is_larger = highest > 0 and not contract.is_bounded and bool(draw(4 if form == "near" else 2, generator))
            most = highest if is_larger else lowest
            stays_near = is_gradient or not (is_larger or has_small_halves)
            if tensor.dtype is torch.float16 or (tensor.dtype is torch.bfloat16 and stays_near):
                most = min(most, LEAST_OF_HALVES)
            if (has_mixed_rows and tensor.dim() == 2) or (traits.has_varied_products and not is_larger):
                most = min(most, LEAST_OF_MIXED)
            power = _draw_power(most, form, generator)
            if most == LEAST and form != "near" and draw(4, generator):
                power = _go_below_constant(traits, generator) or power
            has_signs = is_larger and not is_gradient and not traits.use.terms.functions
            if is_larger and not is_gradient and not has_signs and form != "most":
                power = min(power, NEAR_OF_FUNCTIONS)
            factor = 2.0**power if is_larger else 0.5**power
            sign = SIGNS[draw(3 if form == "near" else 4, generator)] if has_signs else 0.0
            change = partial(_scale, factor=factor, sign=sign)
            _change_slices(tensor, change, generator, is_whole=is_whole or tensor.dim() < 2, dimension=0)


class Contrasted(DerivedKind):
    """Keeps slices, or makes them larger where that is declared, beside much smaller ones: one, or those on one side
    of a place. The places are the same everywhere, or others in each row. Other tensors with as many slices stay, have
    the same ones small, or all others; or others have places of their own. At times only the edges of one path through
    all nodes are small, if square matrices hold those of graphs.
    """

    name = "contrasted"
    changes_gradients = True
    makes_terms_alike = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_usable = is_smooth(traits) and traits.keeps_unconverted
        return is_usable and any(one.dim() for one, _ in self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        tensors = [(one, contract) for one, contract in self.list_allowed(traits, inputs) if has_many_digits(one)]
        if not tensors:
            return inputs
        free = [one for one, contract in tensors if contract.high is None] or [one for one, _ in tensors]
        first = free[draw(len(free), generator)]
        dim = draw_long(first, generator)
        variant = self.find_variant(generator.initial_seed())
        is_one, in_rows = variant >= SIDES, bool(variant % 2)
        if variant == PATH and is_square(first):
            small = mark_path(first.size(-1), generator)
        else:
            small = _choose_side(first, dim, generator, is_one=is_one, in_rows=in_rows)
        others, largest = draw(len(OTHERS), generator), _find_largest_power(traits)
        for tensor, contract in tensors:
            chosen = small if tensor is first else _choose_same(OTHERS[others], small, tensor, first.size(dim))
            if OTHERS[others] == "own" and tensor is not first:
                chosen = _choose_side(tensor, draw_long(tensor, generator), generator, is_one=is_one, in_rows=in_rows)
            if chosen is not None:
                factor = 0.5 ** _draw_contrast(tensor, traits, generator, is_most=variant == PATH)
                change_some(tensor, partial(torch.Tensor.mul_, other=factor), chosen)
                if largest and not contract.is_bounded and tensor.dtype is not torch.float16 and draw(2, generator):
                    change_some(tensor, partial(torch.Tensor.mul_, other=2.0**largest), ~chosen)
        return inputs


def _draw_contrast(tensor: Tensor, traits: InputTraits, generator: torch.Generator, *, is_most: bool) -> int:
    is_far = bool(draw(3, generator)) and not traits.use.has(DIVIDING)
    most = FAR_CONTRASTED if is_far else LEAST_CONTRASTED
    power = _draw_power(most, "most" if is_most or draw(4, generator) else "any", generator)
    power = _avoid_lost_terms(_go_below_constant(traits, generator) or power, traits)
    return min(power, LEAST_OF_HALVES if tensor.element_size() == 2 else LEAST_AT_CONSTANTS)


def _avoid_lost_terms(power: int, traits: InputTraits) -> int:
    """Sums in order lose terms that are each below half a rounding of one that came before, and these terms must not
    add up to more than a small part of the tolerance.
    """
    lost = NEGLIGIBLE + math.ceil(math.log2(max(traits.use.terms.added, 1)))
    if not KEPT < power < lost:
        return power
    return KEPT if traits.use.has(DIVIDING) else lost


def _choose_same(which: str, small: Tensor, tensor: Tensor, size: int) -> Tensor | None:
    """Return the places of another tensor; None if it stays."""
    dims = [dim for dim in range(tensor.dim()) if tensor.size(dim) == size]
    if which == "stay" or not dims:
        return None
    if small.numel() == size:
        small = view_along(small, dims[-1], tensor.dim())
    elif small.shape != tensor.shape:
        return None
    return small if which == "same" else ~small


def _go_below_constant(traits: InputTraits, generator: torch.Generator) -> int:
    """Return the power of two by which values are divided; 0 if the reference has no constants."""
    above = traits.use.above_constants
    return min(above[draw(len(above), generator)] + BELOW, LEAST_AT_CONSTANTS) if above else 0


def _find_largest_power(traits: InputTraits) -> int:
    return max(LARGEST.get(one, 0) for one in traits.problem.distributions)


def _draw_power(most: int, form: str, generator: torch.Generator) -> int:
    if form == "most":
        return most
    return min(1 + draw(NEAR, generator), most) if form == "near" else 1 + int(most * draw_share(generator))


def _choose_side(tensor: Tensor, dim: int, generator: torch.Generator, *, is_one: bool, in_rows: bool) -> Tensor:
    """Choose all but one slice, or those on one side of a place, both mostly near an end."""
    size, device = tensor.size(dim), generator.device
    rows = torch.Size(1 if one == dim or not in_rows else length for one, length in enumerate(tensor.shape))
    places = view_along(torch.arange(size, device=device), dim, tensor.dim())
    shares, is_near, is_first, swaps = (torch.rand(rows, generator=generator, device=device) for _ in range(4))
    near = (size**shares).long().clamp_(max=size) - 1
    near = torch.where(is_near < NEAR_AN_END, near, (shares * size).long().clamp_(max=size - 1))
    at = torch.where(is_first < 0.5, near, size - 1 - near)
    return places != at if is_one else (places <= at).logical_xor_(swaps < 0.5)


class Shifted(DerivedKind):
    """Moves slices along any dimension: a softmax is zero beside one much larger element of its row, and its logarithm
    infinite. Values that a maximum takes become smaller, so that one that begins at 0 is wrong. Where minus
    infinity stands for values that do not count, all others are negative and large, as scores beside a mask.
    """

    name = "shifted"
    variants, whole_one_in = 6, 3

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if not _find_shifts(traits) or not self.may_apply(traits, inputs):
            return False
        return is_smooth(traits) or traits.use.orders_values

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_sizes and not contract.is_bounded

    def allows_draw(self, contract: InputContract) -> bool:
        return not contract.is_bounded

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        self.change_all(self.list_allowed(traits, inputs), traits, generator, inputs)
        return inputs

    def change_all(
        self,
        tensors: Sequence[tuple[Tensor, InputContract]],
        traits: InputTraits,
        generator: torch.Generator,
        inputs: Inputs | None = None,
    ) -> None:
        """Raise all, or those of `inputs` of which a maximum is subtracted."""
        shifts = _find_shifts(traits)
        shift = shifts[draw(len(shifts), generator)]
        is_whole, is_far = self.changes_all(generator.initial_seed()), shift < 0 and draw(3, generator)
        changed = [tensor for tensor, _ in tensors if has_many_digits(tensor)]
        if shift > 0 and inputs is not None:
            changed = _choose_raised(changed, inputs, traits, generator)
        for tensor in changed:
            change = _make_shift(tensor, shift, generator, is_far=is_far) if shift else _lower(tensor, generator)
            dimension = 0 if traits.use.has(LOGARITHMS) else None
            stays_whole = tensor.dim() < 2 and (not tensor.dim() or dimension is not None or not shift)
            _change_slices(tensor, change, generator, is_whole=is_whole or stays_whole, dimension=dimension)


def _choose_raised(
    tensors: Sequence[Tensor], inputs: Inputs, traits: InputTraits, generator: torch.Generator
) -> list[Tensor]:
    """Choose one, or all, of which a maximum is subtracted."""
    places = {memory_of(one): at for at, one in enumerate(list_tensors(inputs))}
    raised = [one for one in tensors if places.get(memory_of(one)) in traits.use.raised]
    return [raised[draw(len(raised), generator)]] if len(raised) > 1 and draw(2, generator) else raised


def _find_shifts(traits: InputTraits) -> list[float]:
    """Return what is added; zero stands for negative values beside a mask, whose products would be positive."""
    use = traits.use
    is_masked = use.fills_infinity and not use.terms.multiplied
    return [SHIFT] * bool(use.raised) + [-SHIFT] * use.has(LOWERED, on_input=True) + [0.0] * is_masked


def _make_shift(
    tensor: Tensor, shift: float, generator: torch.Generator, *, is_far: bool | int
) -> Callable[[Tensor], object]:
    lowest = LOWEST.get(tensor.dtype, LOWEST_OF_OTHERS)
    if shift > 0:
        amount = shift * 2.0 ** (FURTHER * draw(2, generator))
    elif is_far:
        amount = shift * 2.0 ** (lowest if draw(4, generator) else draw(lowest + 1, generator))
    else:  # below zero: at times just below, so that differences keep their digits
        largest = find_largest(tensor)
        least = 2.0 ** math.ceil(math.log2(largest)) if 0 < largest < math.inf else -shift
        amount = -min(max(least, -shift * draw(2, generator)), -shift * 2.0**lowest)
    return partial(torch.Tensor.add_, other=amount)


def _lower(tensor: Tensor, generator: torch.Generator) -> Callable[[Tensor], object]:
    least, most = BESIDE_A_MASK[min(tensor.element_size(), 4)]
    return partial(_scale, factor=2.0 ** (least + draw(most - least + 1, generator)), sign=-1.0)


def _scale(part: Tensor, *, factor: float, sign: float) -> None:
    """With a `sign`, all values get it."""
    if sign:
        part.abs_().mul_(sign)
    part.mul_(factor)


def _change_slices(
    tensor: Tensor,
    change: Callable[[Tensor], object],
    generator: torch.Generator,
    *,
    is_whole: bool,
    dimension: int | None = None,
) -> None:
    chosen = None if is_whole else choose_part(tensor, generator, only_slices=True, dimension=dimension)
    change_some(tensor, change, chosen)
