"""Defines kinds of inputs that problems declare: same shapes and dtypes, other floating values or other strides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from harness.domain import Problem
from harness.problems.inputs.kind import InputKind, Inputs
from harness.problems.inputs.tensors import PART, choose_part, floating_tensors, split_parts
from harness.problems.inputs.traits import InputTraits
from harness.tensors.values import map_tensors

PART_BYTES = 32  # temporary memory per element of a part
PADDING = 8  # elements between two rows: rows stay aligned for vector loads
MIXED_CALLS, SMALL_MIXED_CALLS = 2, 5  # of large and small problems


@dataclass(frozen=True, slots=True)
class Distribution(InputKind):
    name: str
    draw: Callable[[Tensor, Generator], Tensor]  # from given values
    is_stress: bool = True
    is_exact: bool = False
    keeps_equal: bool = False

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        for tensor in traits.list_refillable(inputs):
            for part in split_parts(tensor):
                part.copy_(self.refill(part, generator))
        return inputs

    def refill(self, part: Tensor, generator: Generator) -> Tensor:
        """Draw 8-bit formats in float32, since torch cannot draw them or compute with them."""
        values = self.draw(widen(part), generator)
        if values.dtype is part.dtype:
            return values
        limits = torch.finfo(part.dtype)
        return values.clamp_(limits.min, limits.max)

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return count_refill_bytes(inputs)


def widen(part: Tensor) -> Tensor:
    return part.float() if part.element_size() == 1 else part


def count_refill_bytes(inputs: Sequence[Any]) -> int:
    sizes = [tensor.numel() for tensor in floating_tensors(inputs)]
    return max((size + PART_BYTES * min(size, PART) for size in sizes), default=0)


def _draw_normal(given: Tensor, generator: Generator) -> Tensor:
    return torch.randn(given.shape, generator=generator, device=given.device, dtype=given.dtype)


def _draw_uniform(given: Tensor, generator: Generator) -> Tensor:
    return torch.rand(given.shape, generator=generator, device=given.device, dtype=given.dtype) * 2 - 1


def _scale(factor: float, half: float) -> Callable[[Tensor, Generator], Tensor]:
    """`half` is the factor for float16, whose largest value is 65504 and whose least one with all digits 6e-5."""
    return lambda given, _: given * (half if given.dtype == torch.float16 else factor)


def _draw_integers(given: Tensor, high: int, generator: Generator) -> Tensor:
    return torch.randint(0, high, given.shape, generator=generator, device=given.device).to(given.dtype)


def _alternate(given: Tensor, generator: Generator) -> Tensor:
    signs = torch.ones(given.shape[-1:], device=given.device, dtype=given.dtype)
    signs[..., 1::2] = -1
    return given.abs() * signs


DISTRIBUTIONS = (
    Distribution("normal", _draw_normal),
    Distribution("uniform", _draw_uniform),
    Distribution("large", _scale(1000.0, 100.0)),
    Distribution("tiny", lambda given, _: given * 1e-3),
    Distribution("scale_3", lambda given, _: given * 3.0, is_stress=False),
    Distribution("scale_0.01", lambda given, _: given * 0.01, is_stress=False),
    Distribution("scale_-1", lambda given, _: -given, is_stress=False),
    Distribution("scale_1e6", _scale(1e6, 100.0), is_stress=False),
    Distribution("scale_1e-12", _scale(1e-12, 1e-3), is_stress=False),
    Distribution("zeros", lambda given, _: torch.zeros_like(given)),
    Distribution("ties", lambda given, generator: _draw_integers(given, 4, generator) - 1.5, keeps_equal=True),
    Distribution("alternating", _alternate),
    Distribution(
        "integers",
        lambda given, generator: _draw_integers(given, 2, generator),
        is_stress=False,
        is_exact=True,
    ),
)


def list_stress(problem: Problem) -> tuple[Distribution, ...]:
    by_name = {one.name: one for one in DISTRIBUTIONS if one.is_stress}
    return tuple(by_name[name] for name in problem.distributions if name in by_name)


class Padded(InputKind):
    name = "padded"
    changes_layout = True

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        return pad_rows(inputs)


def pad_rows(inputs: Inputs) -> Inputs:
    """Return every tensor as a strided view of a buffer padded with NaN (integers: zero)."""
    padded: Inputs = map_tensors(inputs, _pad)
    return padded


def _pad(tensor: Tensor) -> Tensor:
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    *rows, length = tensor.shape
    between = float("nan") if tensor.is_floating_point() or tensor.is_complex() else 0
    buffer = tensor.new_full((*rows, length + PADDING), between)
    view = buffer[..., PADDING:]
    view.copy_(tensor)
    return view


class Mixed(InputKind):
    """Detects candidates that recognise stress values by a sample."""

    name = "mixed"
    changes_gradients = True

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        for distribution in list_stress(traits.problem):
            for tensor in traits.list_refillable(inputs):
                mix(tensor, distribution, generator)
        return inputs

    def count_bytes(self, inputs: Sequence[Any]) -> int:
        return count_refill_bytes(inputs)

    def count_calls(self, *, is_small: bool) -> int:
        return SMALL_MIXED_CALLS if is_small else MIXED_CALLS


def mix(tensor: Tensor, distribution: Distribution, generator: Generator) -> None:
    """Refill random elements or slices in place, so that a sample of the inputs does not reveal them."""
    mask = choose_part(tensor, generator).expand_as(tensor)
    for part, chosen in zip(split_parts(tensor), split_parts(mask), strict=True):
        part.copy_(torch.where(chosen, distribution.refill(part, generator), widen(part)))
