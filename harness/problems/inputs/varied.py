from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.problems.inputs.declared import list_stress
from harness.problems.inputs.kind import DerivedKind, Inputs, is_continuous
from harness.problems.inputs.tensors import draw, draw_share, find_inexact, has_negative, is_dense, split_for_device
from harness.problems.inputs.traits import InputTraits

# Defined in pieces, or computed so: all given values may lie in one of them.
PIECEWISE = {
    "relu", "leaky_relu", "_prelu_kernel", "elu", "threshold", "hardtanh", "hardsigmoid", "hardswish", "softshrink",
    "hardshrink", "clamp", "clamp_min", "clamp_max", "abs", "sign", "maximum", "minimum", "fmax", "fmin", "gt", "ge",
    "lt", "le", "smooth_l1_loss", "huber_loss", "linalg_vector_norm", "floor", "ceil", "round", "trunc", "frac", "fmod",
    "remainder", "atan2", "grid_sampler_2d", "grid_sampler_3d", "copysign", "sgn", "heaviside", "floor_divide", "eq",
    "ne", "gelu", "silu", "mish", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf",
}  # fmt: skip
FACTORS = (8.0, 4.0)  # one of them in each call: the larger one makes some results depend on roundings
LEAST_SCATTERED, LARGEST_SHARE = 8, 1024  # at most one in so many elements is scattered, but at least so many


class Varied(DerivedKind):
    """Changes scattered elements or a stretch, in all calls to both signs if `PIECEWISE` operators take inputs, in
    three of four if they take what follows these, else in half: the size of sums of values of one sign hides errors of
    narrower formats.
    """

    name = "varied"
    changes_gradients = True
    variants = whole_one_in = 3

    def applies(self, traits: InputTraits, inputs: Sequence[Any]) -> bool:
        is_free = is_continuous(traits) and not list_stress(traits.problem)
        return is_free and bool(self.list_allowed(traits, inputs))

    def change(self, inputs: Inputs, traits: InputTraits, generator: torch.Generator) -> Inputs:
        factor, is_signed = FACTORS[draw(len(FACTORS), generator)], bool(draw(2, generator))
        is_signed |= traits.use.has(PIECEWISE, on_input=True)
        is_signed |= traits.use.has(PIECEWISE, follows_input=True) and bool(draw(2, generator))
        is_scattered = is_signed and not self.changes_all(generator.initial_seed())
        for tensor, contract in self.list_allowed(traits, inputs):
            has_both_signs = not contract.is_never_negative and (is_signed or has_negative(tensor))
            sizes = [sign * size for sign in (1.0, -1.0)[: 1 + has_both_signs] for size in (1.0, factor)]
            vary = _vary_scattered if is_scattered and is_dense(tensor) else _vary_stretch
            vary(tensor, torch.tensor(sizes, dtype=tensor.dtype, device=tensor.device), generator)
        return inputs


def _vary_scattered(tensor: Tensor, factors: Tensor, generator: torch.Generator) -> None:
    count = tensor.numel()
    few = int(max(count // LARGEST_SHARE, LEAST_SCATTERED) ** draw_share(generator))
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
