"""Input distributions that problems declare: same shapes, dtypes and strides, other values of floating tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from harness.domain import Problem
from harness.problems.inputs.kind import InputKind, Inputs
from harness.problems.inputs.parts import PART, floating_tensors, split_parts
from harness.problems.inputs.traits import InputTraits

PART_BYTES = 32  # temporary memory per element of a part


@dataclass(frozen=True, slots=True)
class Distribution(InputKind):
    name: str
    text: str
    draw: Callable[[Tensor, Generator], Tensor]  # from given values
    is_stress: bool = True
    is_exact: bool = False

    def change(self, inputs: Inputs, traits: InputTraits, generator: Generator) -> Inputs:
        for tensor in floating_tensors(inputs):
            for part in split_parts(tensor):
                part.copy_(self.refill(part, generator))
        return inputs

    def refill(self, part: Tensor, generator: Generator) -> Tensor:
        """8-bit formats are drawn in float32, since torch cannot draw them or compute with them."""
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
    """Temporary memory of a mask and of the values of a part."""
    sizes = [tensor.numel() for tensor in floating_tensors(inputs)]
    return max((size + PART_BYTES * min(size, PART) for size in sizes), default=0)


def _draw_normal(given: Tensor, generator: Generator) -> Tensor:
    return torch.randn(given.shape, generator=generator, device=given.device, dtype=given.dtype)


def _draw_uniform(given: Tensor, generator: Generator) -> Tensor:
    return torch.rand(given.shape, generator=generator, device=given.device, dtype=given.dtype) * 2 - 1


def _enlarge(given: Tensor, generator: Generator) -> Tensor:
    return given * (100.0 if given.dtype == torch.float16 else 1000.0)  # the largest float16 is 65504


def _draw_integers(given: Tensor, high: int, generator: Generator) -> Tensor:
    return torch.randint(0, high, given.shape, generator=generator, device=given.device).to(given.dtype)


def _alternate(given: Tensor, generator: Generator) -> Tensor:
    signs = torch.ones(given.shape[-1:], device=given.device, dtype=given.dtype)
    signs[..., 1::2] = -1
    return given.abs() * signs


DISTRIBUTIONS = (
    Distribution("normal", "standard normal", _draw_normal),
    Distribution("uniform", "between -1 and 1", _draw_uniform),
    Distribution("large", "as given, times 1000 (float16: 100)", _enlarge),
    Distribution("tiny", "as given, times 0.001", lambda given, _: given * 1e-3),
    Distribution("zeros", "all zero", lambda given, _: torch.zeros_like(given)),
    Distribution("ties", "four distinct values", lambda given, generator: _draw_integers(given, 4, generator) - 1.5),
    Distribution("alternating", "as given, with signs + - + -: sums cancel", _alternate),
    Distribution(
        "integers",
        "zeros and ones; compared exactly where every summation order is exact",
        lambda given, generator: _draw_integers(given, 2, generator),
        is_stress=False,
        is_exact=True,
    ),
)


def list_stress(problem: Problem) -> tuple[Distribution, ...]:
    by_name = {one.name: one for one in DISTRIBUTIONS if one.is_stress}
    return tuple(by_name[name] for name in problem.distributions if name in by_name)
