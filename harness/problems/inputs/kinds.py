"""Kinds of inputs derived from given ones, and the list of all kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.domain import InputContract, Problem, UsageError
from harness.problems.discovery import DISTRIBUTION_NAMES
from harness.problems.inputs.declared import DISTRIBUTIONS, Mixed, Padded, list_stress
from harness.problems.inputs.general import General
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind, Inputs, is_continuous
from harness.problems.inputs.rare import Rare
from harness.problems.inputs.tensors import (
    PATTERNS,
    choose_part,
    count_part,
    draw,
    draw_share,
    find_inexact,
    has_many_digits,
    has_negative,
    is_dense,
    split_for_device,
    split_parts,
)
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import ORDERING

# Defined in pieces, or computed so: all given values may lie in one of them.
PIECEWISE = {
    "relu", "leaky_relu", "_prelu_kernel", "elu", "threshold", "hardtanh", "hardsigmoid", "hardswish", "softshrink",
    "hardshrink", "clamp", "clamp_min", "clamp_max", "abs", "sign", "maximum", "minimum", "fmax", "fmin", "gt", "ge",
    "lt", "le", "smooth_l1_loss", "huber_loss", "linalg_vector_norm", "floor", "ceil", "round", "trunc", "frac", "fmod",
    "remainder", "atan2", "grid_sampler_2d", "grid_sampler_3d", "copysign", "sgn", "heaviside", "floor_divide", "eq",
    "ne", "gelu", "silu", "mish", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf",
}  # fmt: skip
FACTORS = (8.0, 4.0)  # one of them in each call: the larger one makes some results depend on roundings
LEAST_SCATTERED, LARGEST_VARIED_SHARE = 8, 1024  # at most one in so many elements is scattered, but at least so many


class Varied(DerivedKind):
    name = "varied"
    is_rarely_seen = True
    is_signed: ClassVar[bool] = False

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if not may_have_any_values(self, traits, inputs) or not is_continuous(traits):
            return False
        return not traits.use.has(PIECEWISE, on_input=True)

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        factor = FACTORS[draw(len(FACTORS), generator)]
        for tensor, contract in self.list_allowed(traits, inputs):
            self._vary(tensor, contract, generator, factor)
        return inputs

    def _vary(self, tensor: Tensor, contract: InputContract, generator: torch.Generator, factor: float) -> None:
        has_both_signs = not contract.is_never_negative and (self.is_signed or has_negative(tensor))
        signs = (1.0, -1.0) if has_both_signs else (1.0,)
        sizes = [sign * size for sign in signs for size in (1.0, factor)]
        factors = torch.tensor(sizes, dtype=tensor.dtype, device=tensor.device)
        if self.is_signed and is_dense(tensor) and not self.changes_all(generator.initial_seed()):
            _vary_scattered(tensor, factors, generator)
        else:
            _vary_stretch(tensor, factors, generator)


class Signed(Varied):
    """Also for sums of values of one sign, whose size hides errors of narrower formats."""

    name = "signed"
    is_signed = True

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        if not may_have_any_values(self, traits, inputs) or not is_continuous(traits):
            return False
        if traits.use.has(PIECEWISE, on_input=True):
            return True
        allowed = self.list_allowed(traits, inputs)
        return any(not contract.is_never_negative and not has_negative(tensor) for tensor, contract in allowed)


def may_have_any_values(kind: DerivedKind, traits: InputTraits, inputs: Sequence[Any]) -> bool:
    """True if a contract allows the changes of `kind`, and the problem declares no other ones."""
    return not list_stress(traits.problem) and bool(kind.list_allowed(traits, inputs))


def _vary_scattered(tensor: Tensor, factors: Tensor, generator: torch.Generator) -> None:
    count = tensor.numel()
    few = int(max(count // LARGEST_VARIED_SHARE, LEAST_SCATTERED) ** draw_share(generator))
    flat = tensor.as_strided((count,), (1,))
    drawn = torch.randint(count, (max(few, LEAST_SCATTERED),), generator=generator, device=tensor.device)
    places: Tensor = torch.unique(drawn)  # a GPU writes the values of a repeated place in any order
    flat[places] = _multiply(flat[places], factors, generator)


def _vary_stretch(tensor: Tensor, factors: Tensor, generator: torch.Generator) -> None:
    """Multiply elements inside or outside a secret range."""
    count = tensor.numel()
    is_inside, share = draw(3, generator) == 0, draw_share(generator)
    length = int(count**share if is_inside else count * share)
    first = draw(count - length + 1, generator)
    begin = 0
    for part in split_for_device(tensor.as_strided((count,), (1,)) if is_dense(tensor) else tensor):
        places = torch.arange(begin, begin + part.numel(), device=tensor.device).view(part.shape)
        is_chosen = ((places >= first) & (places < first + length)) == is_inside
        part.copy_(torch.where(is_chosen, _multiply(part, factors, generator), part))
        begin += part.numel()


def _multiply(values: Tensor, factors: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randint(len(factors), values.shape, generator=generator, device=values.device)
    return torch.where(find_inexact(values), values * factors[drawn], values)


# Each of 256 threads that form a longer sum adds so many of its terms that float32 sums lose as much as the roundings
# to narrower formats that these values reveal.
MOST_TERMS = 1 << 17


class Biased(DerivedKind):
    """Changes each value by less than 1 % (16-bit formats: 7 %)."""

    name = "biased"
    whole_one_in = 2

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return is_continuous(traits) and traits.use.most_terms <= MOST_TERMS and bool(self.list_allowed(traits, inputs))

    def scales_values(self, traits: InputTraits) -> bool:
        return False

    def allows(self, contract: InputContract) -> bool:
        return contract.has_free_digits and not contract.distinct

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        """Equal values stay equal in tensors with structure: these change as a whole."""
        is_whole = not contract.has_free_sizes or self.changes_all(generator.initial_seed())
        change_some(tensor, _bias, None if is_whole or tensor.dim() < 2 else choose_part(tensor, generator))


def change_some(tensor: Tensor, change: Callable[[Tensor], object], chosen: Tensor | None) -> None:
    if chosen is None:
        change(tensor)
        return
    elements = count_part(tensor)
    masks = split_parts(chosen.expand_as(tensor), elements)
    for part, mask in zip(split_parts(tensor, elements), masks, strict=True):
        changed = part.clone()
        change(changed)
        part.copy_(torch.where(mask, changed, part))


def _bias(tensor: Tensor) -> None:
    pattern = PATTERNS[tensor.dtype]
    for part in split_for_device(tensor):
        bits = part.view(pattern.integer)
        shifted = (bits & pattern.digits) >> pattern.right << pattern.left
        biased = (bits & ~pattern.digits) | pattern.fixed | shifted
        bits.copy_(torch.where(find_inexact(part), biased, bits))


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
    """Each tensor times one factor between 1/3 and 3/4, so that all its values are far below the largest given ones."""

    name = "smaller"

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return may_have_any_values(self, traits, inputs) and is_continuous(traits)

    def scales_values(self, traits: InputTraits) -> bool:
        return False  # outputs depend on roundings as much as those of the given inputs, which are compared too

    def change_tensor(self, tensor: Tensor, contract: InputContract, generator: torch.Generator) -> None:
        if has_many_digits(tensor):
            tensor.mul_(0.75 - (0.75 - 1 / 3) * draw_share(generator))


STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones
CROWDED_ONE_IN = 2
CROWDED_BY = 2.0**-12  # a power of two: no digit is lost


class Ordered(DerivedKind):
    """Gives whole inputs the opposite order, or enlarges distances above a random element: equal values stay equal, and
    different ones come closer only where the reference orders its inputs themselves, without rounding before.
    """

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

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        super().change(inputs, traits, generator)
        if not traits.use.has(ORDERING, on_input=True) or draw(CROWDED_ONE_IN, generator):
            return inputs
        for tensor, contract in self.list_allowed(traits, inputs):
            if not contract.is_bounded and has_many_digits(tensor):
                _crowd(tensor)
        return inputs

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


def _crowd(tensor: Tensor) -> None:
    """Make distances smaller, unless small values would lose digits."""
    for part in split_for_device(tensor):
        if not torch.equal(part * CROWDED_BY / CROWDED_BY, part):
            return
    tensor.mul_(CROWDED_BY)


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
