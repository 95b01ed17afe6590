import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.biased import change_some
from harness.problems.inputs.kind import DerivedKind, Inputs, is_smooth
from harness.problems.inputs.tensors import (
    draw,
    draw_share,
    find_inexact,
    find_largest,
    has_negative,
    is_dense,
    split_for_device,
    view_along,
)
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import PRODUCTS

# Defined in pieces, or computed so: all given values may lie in one of them.
PIECEWISE = {
    "relu", "leaky_relu", "_prelu_kernel", "elu", "threshold", "hardtanh", "hardsigmoid", "hardswish", "softshrink",
    "hardshrink", "clamp", "clamp_min", "clamp_max", "abs", "sign", "maximum", "minimum", "fmax", "fmin", "gt", "ge",
    "lt", "le", "smooth_l1_loss", "huber_loss", "linalg_vector_norm", "floor", "ceil", "round", "trunc", "frac", "fmod",
    "remainder", "atan2", "grid_sampler_2d", "grid_sampler_3d", "copysign", "sgn", "heaviside", "floor_divide", "eq",
    "ne", "gelu", "silu", "mish", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf",
}  # fmt: skip
# Approximations of these differ from them most where they have almost reached their limits: far from zero, but where
# exponentials and their squares still have digits.
SATURATING = {"gelu", "silu", "mish", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf", "elu"}
TAIL = 20.0
# One of them in each call. The larger one makes some results depend on roundings, and closes gates before another
# function that loses the digits of what they leave.
FACTORS = (8.0, 4.0)
SIGNED_ONE_IN = 4  # of the calls that change whole inputs, if values of one sign may keep it
# At most one in so many elements is scattered, of functions that saturate more, but at least so many.
LEAST_SCATTERED, LARGEST_SHARE, LARGEST_IN_TAILS = 8, 1024, 64


class Varied(DerivedKind):
    """Changes scattered elements or a stretch, in all calls to both signs if `PIECEWISE` operators take inputs, in
    three of four if they take what follows these, else in half: the size of sums of values of one sign hides errors of
    narrower formats. If whole inputs change and keep their signs, all values are as much larger: gates stay open, so
    that outputs depend on early steps. Scattered values reach the tails of functions that inputs are given to. Most
    calls of products alone make the same slices of factors larger, so that these are not independent.
    """

    name = "varied"
    changes_gradients = has_usual_sizes = True
    variants = whole_one_in = 3

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        return is_smooth(traits) and self.may_apply(traits, inputs)

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        self.change_all(self.list_allowed(traits, inputs), traits, generator)
        return inputs

    def scales_values(self, traits: InputTraits) -> bool:
        """False if only signs change."""
        changed = [one for one in traits.contracts if self.may_change(one)]
        return not changed or not all(one.is_converted for one in changed)

    def may_change(self, contract: InputContract) -> bool:
        return self.allows(contract) and (contract.is_stated or not contract.is_converted)

    def allows_draw(self, contract: InputContract) -> bool:
        return contract.high is None

    def change_all(
        self, tensors: Sequence[tuple[Tensor, InputContract]], traits: InputTraits, generator: torch.Generator
    ) -> None:
        use, is_whole = traits.use, self.changes_all(generator.initial_seed())
        factors = FACTORS if use.terms.functions <= 1 else FACTORS[1:]
        larger, is_signed = factors[draw(len(factors), generator)], bool(draw(2, generator))
        is_signed |= use.has(PIECEWISE, follows_input=True) and bool(draw(2, generator))
        is_signed &= not is_whole or not draw(SIGNED_ONE_IN, generator)
        needs_signs = use.has(PIECEWISE, on_input=True)
        is_signed |= needs_signs or use.converts_to_integers
        reaches_tails = use.has(SATURATING, on_input=True)
        has_functions = use.terms.functions or use.exponentiates
        if use.has(PRODUCTS) and not has_functions and draw(2 if is_whole or needs_signs else 4, generator):
            _vary_shared([one for one, contract in tensors if not contract.is_converted], larger, generator)
            return
        for tensor, contract in tensors:
            factor = 1.0 if contract.is_converted else larger  # steps of larger values depend on roundings
            has_both_signs = not contract.is_never_negative and (is_signed or has_negative(tensor))
            if is_whole and not is_signed:
                _vary_all(tensor, _make_factors(tensor, [factor]), generator)
            elif is_signed and not is_whole and is_dense(tensor):
                largest = max(factor, _reach_tails(tensor)) if reaches_tails and not contract.is_converted else factor
                most = tensor.numel() // (LARGEST_IN_TAILS if reaches_tails else LARGEST_SHARE)
                _vary_scattered(tensor, _make_factors(tensor, [1.0, largest], has_both_signs), most, generator)
            else:
                _vary_stretch(tensor, _make_factors(tensor, [1.0, factor], has_both_signs), generator)


def _make_factors(tensor: Tensor, sizes: Sequence[float], has_both_signs: bool = False) -> Tensor:
    signed = [sign * size for sign in (1.0, -1.0)[: 1 + has_both_signs] for size in sizes]
    return torch.tensor(signed, dtype=tensor.dtype, device=tensor.device)


def _reach_tails(tensor: Tensor) -> float:
    """Return the power of two by which the largest value becomes at most `TAIL`."""
    largest = find_largest(tensor)
    is_usable = 0 < largest < math.inf and tensor.dtype is not torch.float16
    return 2.0 ** math.floor(math.log2(TAIL / largest)) if is_usable else 1.0


def _vary_all(tensor: Tensor, factors: Tensor, generator: torch.Generator) -> None:
    for part in split_for_device(tensor):
        part.copy_(_multiply(part, factors, generator))


def _vary_scattered(tensor: Tensor, factors: Tensor, most: int, generator: torch.Generator) -> None:
    count = tensor.numel()
    few = int(max(most, LEAST_SCATTERED) ** draw_share(generator))
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


def _vary_shared(tensors: Sequence[Tensor], factor: float, generator: torch.Generator) -> None:
    """Multiply the same slices along dimensions of one size, if possible one that several tensors have."""
    counts = Counter(size for tensor in tensors for size in dict.fromkeys(tensor.shape) if size > 1)
    sizes = [size for size, count in counts.items() if count > 1] or list(counts)
    if not sizes:
        return
    size = sizes[draw(len(sizes), generator)]
    chosen = torch.rand(size, generator=generator, device=generator.device) < draw_share(generator)
    for tensor in tensors:
        dims = [dim for dim, length in enumerate(tensor.shape) if length == size]
        if dims:
            dim = dims[draw(len(dims), generator)]
            change_some(tensor, partial(torch.Tensor.mul_, other=factor), view_along(chosen, dim, tensor.dim()))


def _multiply(values: Tensor, factors: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randint(len(factors), values.shape, generator=generator, device=values.device)
    return torch.where(find_inexact(values), values * factors[drawn], values)
