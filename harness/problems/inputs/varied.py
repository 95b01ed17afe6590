from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.domain import InputContract
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
