"""Inputs that stay among the values of a problem's own `get_inputs`, for problems that declare no distributions.

`biased`: mantissas whose rounding errors in narrower formats have one sign, so that they do not cancel in long sums.
Each value changes by less than 1 % (16-bit formats: 7 %). `sparse`: few elements at secret positions keep
their values, all others are nearly zero, so that a result of a part of the elements is far from that of all.

Values of few binary digits (indices, masks, infinities) stay, and so do tensors that consist of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.domain import BIASED
from harness.problems.distributions import floating_tensors, split_parts
from harness.protocol import count_span

PART = 1 << 20  # elements that are changed at a time, or one row
PART_BYTES = 32  # temporary memory per element of a part, with copies of the elements that stay
# Of the largest magnitude: far above the constants that programs add to denominators, and so small that all elements
# together are less than those that keep their values, if possible.
NEARLY_ZERO = (1e-6, 1e-4)
LARGEST_SHARE = 16  # at most one in so many elements is scattered, or in the stretch
LEAST_ELEMENTS = 1024


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`digits`: low bits that are rewritten: `fixed`, and the highest of them shifted right, then left. `few`: most
    scattered elements; half of so many have another mean, far beyond the tolerance of the dtype."""

    integer: torch.dtype
    exact: int  # of a value that a narrower format represents, these bits are zero
    digits: int
    fixed: int
    right: int
    left: int
    few: int


# In each narrower format the first digit that is lost is 0, the next two are 1: in TF32, float16 and bfloat16; in
# bfloat16 and float8; in float8.
PATTERNS = {
    torch.float32: _Pattern(torch.int32, exact=0x1FFF, digits=0xFFFF, fixed=0x6C00, right=6, left=0, few=1 << 15),
    torch.float16: _Pattern(torch.int16, exact=0x7F, digits=0x7F, fixed=0x33, right=6, left=3, few=1 << 8),
    torch.bfloat16: _Pattern(torch.int16, exact=0xF, digits=0xF, fixed=0x6, right=3, left=0, few=1 << 4),
}


def restrict(value: object, kind: str, generator: torch.Generator) -> None:
    """Makes floating tensors in nested lists, tuples and dicts `biased` or `sparse`, in place."""
    for tensor in floating_tensors(value):
        if tensor.dtype not in PATTERNS:
            continue
        if kind == BIASED:
            _bias(tensor)
        else:
            _thin_out(tensor, generator)


def perturb(value: object, seed: int) -> None:
    """Moves each floating value by up to one rounding, up or down, in place."""
    for tensor in floating_tensors(value):
        generator = torch.Generator(device=tensor.device).manual_seed(seed)
        for part in split_parts(tensor, PART) if tensor.dtype in PATTERNS else ():
            signs = torch.randint(-1, 2, part.shape, generator=generator, dtype=part.dtype, device=part.device)
            part.addcmul_(part, signs, value=torch.finfo(part.dtype).eps)


def count_own_bytes(value: object) -> int:
    """Temporary memory of `restrict`."""
    return max((PART_BYTES * min(tensor.numel(), PART) for tensor in floating_tensors(value)), default=0)


def _bias(tensor: Tensor) -> None:
    pattern = PATTERNS[tensor.dtype]
    for bits in _list_bits(tensor):
        shifted = (bits & pattern.digits) >> pattern.right << pattern.left
        biased = (bits & ~pattern.digits) | pattern.fixed | shifted
        bits.copy_(torch.where((bits & pattern.exact) != 0, biased, bits))


def _thin_out(tensor: Tensor, generator: torch.Generator) -> None:
    count = tensor.numel()
    background = _find_background(tensor) if _is_dense(tensor) and count >= LEAST_ELEMENTS else None
    if background is None:
        return
    flat = tensor.as_strided((count,), (1,))
    few = min(count // LARGEST_SHARE, PATTERNS[tensor.dtype].few)
    places = torch.randint(count, (few,), generator=generator, device=tensor.device)
    length = 1 + _draw(few, generator)
    first = _draw(count - length + 1, generator)
    scattered, stretch = flat[places], flat[first : first + length].clone()
    flat.fill_(background)
    flat[first : first + length] = stretch
    flat[places] = scattered


def _find_background(tensor: Tensor) -> float | None:
    """None if the values do not come near zero, or most have few digits."""
    exact, few = PATTERNS[tensor.dtype].exact, PATTERNS[tensor.dtype].few
    irregular = sum(int(((bits & exact) != 0).count_nonzero()) for bits in _list_bits(tensor))
    if irregular * 2 <= tensor.numel():
        return None
    ranges = [_find_range(part) for part in split_parts(tensor, PART)]
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    lowest, highest = NEARLY_ZERO
    near = max(lowest, min(highest, few / (4 * tensor.numel()))) * most
    if not math.isfinite(near) or least > near:
        return None
    return near if float(tensor.max()) > 0 else -near


def _find_range(part: Tensor) -> tuple[float, float]:
    """Of the magnitudes."""
    sizes = part.abs()
    return float(sizes.min()), float(sizes.max())


def _list_bits(tensor: Tensor) -> Iterator[Tensor]:
    for part in split_parts(tensor, PART):
        yield part.view(PATTERNS[tensor.dtype].integer)


def _is_dense(tensor: Tensor) -> bool:
    return count_span(tensor.shape, tensor.stride()) == tensor.numel()


def _draw(high: int, generator: torch.Generator) -> int:
    return int(torch.randint(high, (), generator=generator, device=generator.device))
