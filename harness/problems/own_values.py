"""Changes the values of `get_inputs` slightly, so that problems without declared distributions are tested as strictly.

docs/correctness.md describes the kinds. The parts of `shifted` and `lowered` are slices of the first dimension: beside
one much larger element, a softmax is zero and its logarithm infinite. Tensors of values with few binary digits
(indices, masks, infinities) stay unchanged.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.domain import ALTERED, BIASED, LOWERED, NEGATED, RARE, SHIFTED, SIGNED, SPARSE, STRETCHED, VARIED
from harness.problems.distributions import choose_part, floating_tensors, split_parts
from harness.protocol import count_span
from harness.tensors.trees import list_tensors

OWN_KINDS = (ALTERED, BIASED, LOWERED, NEGATED, RARE, SHIFTED, SIGNED, SPARSE, STRETCHED, VARIED)
INDEPENDENT = (LOWERED, SHIFTED, SIGNED, SPARSE, VARIED)  # for tensors whose elements are drawn by themselves
SHIFTS = {SHIFTED: 128.0, LOWERED: -128.0}  # exponentials of the larger values overflow
# Elements that are changed at a time, or one row: on a CPU few enough for its cache, on a GPU enough to fill it.
PARTS = {"cpu": 1 << 20, "cuda": 1 << 25}
PART_BYTES = 40  # temporary memory per element of a part, with copies of the elements that stay
# Of the largest magnitude: far above the constants that programs add to denominators, and so small that all elements
# together are less than those that keep their values, if possible.
NEARLY_ZERO = (1e-6, 1e-4)
# Of `varied` and `signed`, one of them in each call: the larger one makes some results depend on roundings.
FACTORS = (8.0, 4.0)
FLIPPED_SHARE = 0.25
FEW_TIMES = 6  # in all but one of so many calls few elements are changed
LEAST_SCATTERED = 8
LARGEST_SHARE = 16  # at most one in so many elements is scattered, or in the stretch
LEAST_ELEMENTS = 1024
STRETCHED_BY = 3.0  # times the distance, added to values above the least of the stretched ones


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`digits`: low bits that are rewritten by `fixed` and by the highest of them, shifted right, then left.

    `few`: the largest number of scattered elements; half of them shift the mean far beyond the tolerance of the dtype.
    """

    integer: torch.dtype
    exact: int  # of a value that a narrower format represents, these bits are zero
    digits: int
    fixed: int
    right: int
    left: int
    few: int


# In each narrower format the first digit that is lost is 0: in float32; in TF32, float16 and bfloat16; in bfloat16 and
# float8; in float8. In 16-bit types the next two are 1; in float32 they stay random, since sums that add thousands of
# values one after the other lose digits in between.
PATTERNS = {
    torch.float64: _Pattern(torch.int64, exact=0x1FFFFFFF, digits=1 << 28, fixed=0, right=29, left=0, few=1 << 15),
    torch.float32: _Pattern(torch.int32, exact=0x1FFF, digits=0x9000, fixed=0, right=16, left=0, few=1 << 15),
    torch.float16: _Pattern(torch.int16, exact=0x7F, digits=0x7F, fixed=0x33, right=6, left=3, few=1 << 8),
    torch.bfloat16: _Pattern(torch.int16, exact=0xF, digits=0xF, fixed=0x6, right=3, left=0, few=1 << 4),
}


def changes_all(kind: str, seed: int) -> bool:
    """True if whole inputs are changed, not only secret elements or slices."""
    return random.Random(f"{kind} {seed}").randrange(2 if kind == BIASED else FEW_TIMES) == 0


def restrict(value: object, kind: str, generator: torch.Generator) -> None:
    """Change tensors in nested lists, tuples and dicts in place to one of `OWN_KINDS`; `ALTERED` and `RARE` are already
    made."""
    if kind in (ALTERED, RARE):
        return
    for tensor in list_tensors(value) if kind in (SIGNED, VARIED) else ():
        if is_uniform(tensor):
            flipped = torch.rand(tensor.shape, generator=generator, device=tensor.device) < FLIPPED_SHARE
            tensor.detach().copy_(torch.where(flipped, 1 - tensor.to(torch.float32), tensor.to(torch.float32)))
    factor = FACTORS[_draw(len(FACTORS), generator)] if kind in (SIGNED, VARIED) else 1.0
    for tensor in floating_tensors(value):
        if tensor.dtype in PATTERNS:
            _change(tensor, kind, generator, factor)


def _change(tensor: Tensor, kind: str, generator: torch.Generator, factor: float) -> None:
    if kind == SPARSE:
        _thin_out(tensor, generator)
    elif kind in (SIGNED, VARIED):
        _vary(tensor, generator, factor, is_signed=kind == SIGNED)
    elif kind != BIASED and not _has_many_digits(tensor):
        return
    elif kind == STRETCHED:
        _stretch(tensor, generator)
    elif kind == NEGATED:
        tensor.neg_()
    elif tensor.dim() > 1 and not changes_all(kind, generator.initial_seed()):
        _move_part(tensor, kind, choose_part(tensor, generator, dimension=0 if kind in SHIFTS else None))
    else:
        _move(tensor, kind)


def _move(tensor: Tensor, kind: str) -> None:
    if kind == BIASED:
        _bias(tensor)
    else:
        tensor.add_(SHIFTS[kind])


def _move_part(tensor: Tensor, kind: str, mask: Tensor) -> None:
    elements = count_part(tensor)
    masks = split_parts(mask.expand_as(tensor), elements)
    for part, chosen in zip(split_parts(tensor, elements), masks, strict=True):
        moved = part.clone()
        _move(moved, kind)
        part.copy_(torch.where(chosen, moved, part))


def is_uniform(tensor: Tensor) -> bool:
    """True for dense tensors of zeros or of ones."""
    if tensor.layout is not torch.strided or not (tensor.dtype is torch.bool or tensor.dtype in PATTERNS):
        return False
    if tensor.numel() < 2 or tensor.is_meta or not _is_dense(tensor):
        return False
    first = float(tensor.flatten()[0])
    return first in (0.0, 1.0) and bool((tensor == first).all())


def perturb(value: object, seed: int) -> None:
    """Move each floating value up or down by at most one rounding, in place."""
    for tensor in floating_tensors(value):
        generator = torch.Generator(device=tensor.device).manual_seed(seed)
        for part in _split(tensor) if tensor.dtype in PATTERNS else ():
            signs = torch.randint(-1, 2, part.shape, generator=generator, dtype=part.dtype, device=part.device)
            eps = torch.finfo(part.dtype).eps
            moved = torch.addcmul(part, part, signs, value=eps / 2 if part.element_size() == 2 else eps)
            part.copy_(torch.where(part.isfinite(), moved, part))


def count_own_bytes(value: object) -> int:
    """Temporary memory of `restrict`: a mask, and the values of a part."""
    tensors = floating_tensors(value)
    return max((one.numel() + PART_BYTES * min(one.numel(), count_part(one)) for one in tensors), default=0)


def count_part(tensor: Tensor) -> int:
    return PARTS.get(tensor.device.type, PARTS["cpu"])


def _bias(tensor: Tensor) -> None:
    pattern = PATTERNS[tensor.dtype]
    for bits in _list_bits(tensor):
        shifted = (bits & pattern.digits) >> pattern.right << pattern.left
        biased = (bits & ~pattern.digits) | pattern.fixed | shifted
        bits.copy_(torch.where((bits & pattern.exact) != 0, biased, bits))


def _stretch(tensor: Tensor, generator: torch.Generator) -> None:
    """Multiply distances above a random element by 4."""
    place = _draw(tensor.numel(), generator)
    least = tensor[tuple(int(index) for index in torch.unravel_index(torch.tensor(place), tensor.shape))].clone()
    for part in _split(tensor):
        part.add_((part - least).clamp_(min=0), alpha=STRETCHED_BY)


def _vary(tensor: Tensor, generator: torch.Generator, factor: float, *, is_signed: bool) -> None:
    has_signs = is_signed or has_negative(tensor)
    signs = (1.0, -1.0) if has_signs else (1.0,)
    factors = torch.tensor(
        [sign * size for sign in signs for size in (1.0, factor)], dtype=tensor.dtype, device=tensor.device
    )
    count, is_dense = tensor.numel(), _is_dense(tensor)
    if is_signed and is_dense and not changes_all(SIGNED, generator.initial_seed()):
        most = max(count // LEAST_ELEMENTS, LEAST_SCATTERED)
        few = int(most ** float(torch.rand((), generator=generator, device=tensor.device)))
        flat = tensor.as_strided((count,), (1,))
        drawn = torch.randint(count, (max(few, LEAST_SCATTERED),), generator=generator, device=tensor.device)
        places: Tensor = torch.unique(drawn)  # a GPU writes the values of a repeated place in any order
        flat[places] = _multiply(flat[places], factors, generator)
        return
    is_inside = _draw(3, generator) == 0
    share = float(torch.rand((), generator=generator, device=tensor.device))
    length = int(count**share if is_inside else count * share)
    first = _draw(count - length + 1, generator)
    begin = 0
    for part in _split(tensor.as_strided((count,), (1,)) if is_dense else tensor):
        places = torch.arange(begin, begin + part.numel(), device=tensor.device).view(part.shape)
        is_chosen = ((places >= first) & (places < first + length)) == is_inside
        part.copy_(torch.where(is_chosen, _multiply(part, factors, generator), part))
        begin += part.numel()


def _multiply(values: Tensor, factors: Tensor, generator: torch.Generator) -> Tensor:
    pattern = PATTERNS[values.dtype]
    drawn = torch.randint(len(factors), values.shape, generator=generator, device=values.device)
    return torch.where((values.view(pattern.integer) & pattern.exact) != 0, values * factors[drawn], values)


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
    if not _has_many_digits(tensor):
        return None
    low, high = tensor.new_full((), math.inf), tensor.new_zeros(())
    for part in _split(tensor):
        sizes = part.abs()
        torch.minimum(low, sizes.min(), out=low)
        torch.maximum(high, sizes.max(), out=high)
    least, most = float(low), float(high)
    lowest, highest = NEARLY_ZERO
    near = max(lowest, min(highest, PATTERNS[tensor.dtype].few / (4 * tensor.numel()))) * most
    if not math.isfinite(near) or least > near:
        return None
    return near if float(tensor.max()) > 0 else -near


def has_negative(tensor: Tensor) -> bool:
    return any(bool((part < 0).any()) for part in _split(tensor))


def _has_many_digits(tensor: Tensor) -> bool:
    count = torch.zeros((), dtype=torch.int64, device=tensor.device)  # there, for one transfer at the end
    for bits in _list_bits(tensor):
        count += ((bits & PATTERNS[tensor.dtype].exact) != 0).count_nonzero()
    return int(count) * 2 > tensor.numel()


def _list_bits(tensor: Tensor) -> Iterator[Tensor]:
    for part in _split(tensor):
        yield part.view(PATTERNS[tensor.dtype].integer)


def _split(tensor: Tensor) -> Iterator[Tensor]:
    return split_parts(tensor, count_part(tensor))


def _is_dense(tensor: Tensor) -> bool:
    return count_span(tensor.shape, tensor.stride()) == tensor.numel()


def _draw(high: int, generator: torch.Generator) -> int:
    return int(torch.randint(high, (), generator=generator, device=generator.device))
