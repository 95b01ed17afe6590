"""Chooses parts of tensors to change, and rewrites binary digits of floating-point values."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from harness.protocol import TensorSpec, count_span
from harness.tensors.values import list_tensors

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MASKED = -1e4  # or less is added to scores that do not count
NEAR_END, INTEGER_WIDTHS = 16, (8, 16, 32)  # part of a range in which numbers are small or large; bits
FEW = 8  # most elements or slices of a sparse choice
SAMPLED = 1 << 20  # elements
LEAST_ZEROS = 1 / 256
LEAST_EQUAL = 0.75  # of the elements, where most are equal
HASHING, HASHED_PLACE = 0x9E3779B1, 29
OF_FIRST = 0.25  # of the chance of a first dimension, which mostly counts what is independent
SHIFTED_SHARE, SLOWER_BELOW, EXCHANGED_ABOVE = 0.5, 0.7, 0.85  # shares of the rows of a copy; the others: reversed
PART = 1 << 23  # elements that are refilled at a time, or one row
# Elements that are changed at a time, or one row: on a CPU few enough for its cache, on a GPU enough to fill it.
PARTS = {"cpu": 1 << 20, "cuda": 1 << 25}
PART_BYTES = 40  # temporary memory per element of a part, with copies of the elements that stay


@dataclass(frozen=True, slots=True)
class Pattern:
    """`digits` are low bits, rewritten by `fixed` and by the highest of them, shifted right, then left. `few` is the
    largest number of scattered elements; half of them shift the mean far beyond the dtype's tolerance.
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
    torch.float64: Pattern(torch.int64, exact=0x1FFFFFFF, digits=1 << 28, fixed=0, right=29, left=0, few=1 << 15),
    torch.float32: Pattern(torch.int32, exact=0x1FFF, digits=0x9000, fixed=0, right=16, left=0, few=1 << 15),
    torch.float16: Pattern(torch.int16, exact=0x7F, digits=0x7F, fixed=0x33, right=6, left=3, few=1 << 8),
    torch.bfloat16: Pattern(torch.int16, exact=0xF, digits=0xF, fixed=0x6, right=3, left=0, few=1 << 4),
}


def list_changeable(value: object) -> list[Tensor]:
    return [tensor for tensor in floating_tensors(value) if tensor.dtype in PATTERNS]


def split_for_device(tensor: Tensor) -> Iterator[Tensor]:
    return split_parts(tensor, count_part(tensor))


def count_part(tensor: Tensor) -> int:
    return PARTS.get(tensor.device.type, PARTS["cpu"])


def count_change_bytes(value: object) -> int:
    tensors = floating_tensors(value)
    return max((one.numel() + PART_BYTES * min(one.numel(), count_part(one)) for one in tensors), default=0)


def find_inexact(values: Tensor) -> Tensor:
    pattern = PATTERNS[values.dtype]
    return (values.view(pattern.integer) & pattern.exact) != 0


def has_many_digits(tensor: Tensor) -> bool:
    """Of a large tensor, look at a sample."""
    tensor = take_sample(tensor)
    count = torch.zeros((), dtype=torch.int64, device=tensor.device)  # there, for one transfer at the end
    for part in split_for_device(tensor):
        count += find_inexact(part).count_nonzero()
    return int(count) * 2 > tensor.numel()


def take_sample(tensor: Tensor) -> Tensor:
    """Return elements of a large contiguous tensor at an odd stride, so that they are of all columns, else all."""
    return tensor.view(-1)[:: max(tensor.numel() // SAMPLED, 1) | 1] if tensor.is_contiguous() else tensor


def has_zeros(tensor: Tensor) -> bool:
    """True if some, not all, values are zero: more than random draws make."""
    sample = take_sample(tensor)
    return LEAST_ZEROS * sample.numel() < sample.numel() - int(sample.count_nonzero()) < sample.numel()


def has_negative(tensor: Tensor) -> bool:
    return any(bool((part < 0).any()) for part in split_for_device(tensor))


def find_largest(tensor: Tensor) -> float:
    return max(float(part.abs().max()) for part in split_for_device(tensor))


def perturb(
    value: object, seed: int | None, roundings: int = 1, least: float = 0.0, *, keeps_ties: bool = False
) -> None:
    """Move each floating value up or down (without a seed, away from zero) by that many roundings (16 bits: one) or by
    up to the share `least`, if stated, in place: zeros by a share of the mean. A negative seed has the opposite moves.
    With `keeps_ties` equal values move alike.
    """
    for tensor in chain(floating_tensors(value), complex_parts(value)):
        generator = torch.Generator(device=tensor.device).manual_seed(abs(seed or 0))
        for part in split_for_device(tensor) if tensor.dtype in PATTERNS else ():
            if keeps_ties:
                signs = _hash(part, abs(seed or 0)).to(part.dtype)
            else:
                signs = torch.randint(2, part.shape, generator=generator, dtype=part.dtype, device=part.device)
            signs = signs.mul_(2).sub_(1) if seed is not None else signs.fill_(1)
            signs.mul_(math.copysign(1, seed or 1))
            step = torch.finfo(part.dtype).eps * (0.5 if part.element_size() == 2 else roundings)
            moved = torch.addcmul(part, part, signs, value=step)
            if least:
                shares = torch.rand(part.shape, generator=generator, device=part.device).to(part.dtype) * signs
                moved = part + shares.mul_(least) * torch.where(part == 0, part.abs().mean(), part)
            part.copy_(torch.where(part.isfinite(), moved, part))


def _hash(values: Tensor, seed: int) -> Tensor:
    """Return a bit of each value."""
    bits = values.view(PATTERNS[values.dtype].integer).long() + 1 + seed
    return (bits * HASHING) >> HASHED_PLACE & 1


FEW_EQUAL = 0.01


def separate_equal(value: object, *, swaps: bool) -> None:
    """Move equal floating values apart by a rounding, in place, if they are few; `swaps`: in the other order."""
    for tensor in floating_tensors(value):
        flat = tensor.reshape(-1)
        order = flat.argsort()
        same = flat[order[1:]] == flat[order[:-1]]
        if 0 < same.count_nonzero() <= FEW_EQUAL * len(flat):
            moved, eps = flat.clone(), torch.finfo(flat.dtype).eps * (-1 if swaps else 1)
            moved[order[1:][same]] *= 1 + eps
            moved[order[:-1][same]] *= 1 - eps
            tensor.copy_(moved.view_as(tensor))


def floating_tensors(value: object) -> Iterator[Tensor]:
    for tensor in list_tensors(value):
        if tensor.is_floating_point() and tensor.numel():
            yield without_repeats(tensor.detach() if tensor.dim() else tensor.detach().view(1))


def complex_parts(value: object) -> Iterator[Tensor]:
    """Yield real and imaginary parts of complex tensors, as one tensor of real numbers each."""
    for tensor in list_tensors(value):
        if tensor.is_complex() and tensor.numel() and not tensor.is_conj() and not tensor.is_neg():
            yield without_repeats(torch.view_as_real(tensor.detach()))


def without_repeats(tensor: Tensor) -> Tensor:
    """Return the part of an expanded tensor that owns memory."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def is_dense(tensor: Tensor) -> bool:
    """True if the elements are contiguous in memory, in any order."""
    return tensor.layout is torch.strided and count_span(tensor.shape, tensor.stride()) == tensor.numel()


def has_own_elements(tensor: Tensor) -> bool:
    """True if no two elements are the same memory."""
    if tensor.layout is not torch.strided:
        return False
    return not TensorSpec(dtype="", shape=tuple(tensor.shape), stride=tensor.stride()).shares_memory


def split_parts(tensor: Tensor, elements: int = PART) -> Iterator[Tensor]:
    """Yield slices of about `elements` along the longest dimension. Their length is even, as alternating signs need."""
    if not tensor.dim() or not tensor.numel():
        yield tensor
        return
    dimension = max(range(tensor.dim()), key=tensor.size)
    length = max(elements * tensor.size(dimension) // tensor.numel(), 2) & ~1
    yield from torch.split(tensor, length, dimension)


def choose_part(
    tensor: Tensor, generator: torch.Generator, *, only_slices: bool = False, dimension: int | None = None
) -> Tensor:
    """Return a non-empty mask that broadcasts to the tensor, of elements or of slices along one `dimension` (None:
    any).

    Half of the masks are sparse, so that a sample misses them; the others cover up to about half.
    """
    if dimension is None:
        dimension = draw(tensor.dim() + (not only_slices), generator)
    shape = [size if dimension in (index, tensor.dim()) else 1 for index, size in enumerate(tensor.shape)]
    count = torch.Size(shape).numel()
    most = max(1.0, min(count / 2, FEW) if draw(2, generator) else count / 2)
    chosen: float = most ** draw_share(generator)
    mask = torch.empty(count, dtype=torch.bool, device=tensor.device)
    for part in torch.split(mask, PART):
        part.copy_(torch.rand(part.numel(), generator=generator, device=tensor.device) < chosen / count)
    mask[draw(count, generator)] = True
    return mask.view(shape)


def view_along(values: Tensor, dim: int, dims: int) -> Tensor:
    """Let a vector broadcast along one of `dims` dimensions."""
    return values.view([-1 if at == dim else 1 for at in range(dims)])


def exchange_few(rows: Tensor, generator: torch.Generator) -> Tensor:
    """Exchange few elements of each row, at the same places of all, and mostly one near an end with any other."""
    size = rows.size(-1)
    order = torch.arange(size, device=rows.device)
    for _ in range(int(FEW ** draw_share(generator))):
        pair = [draw_near_end(size, generator), draw(size, generator)]
        order[pair] = order[pair[::-1]]
    return rows.index_select(-1, order)


def rearrange(given: Tensor, generator: torch.Generator) -> Tensor:
    """Of integers that are only known from a draw: make equal ones (lengths, counts) smaller, and shuffle others."""
    flat = given.flatten()
    high = int(flat.max())
    if int(flat.min()) < high:
        return flat[torch.randperm(flat.numel(), generator=generator, device=flat.device)].view(given.shape)
    if high <= 0:
        return given
    draws = torch.randint(min(1, high - 1), high + 1, flat.shape, generator=generator, device=flat.device)
    keeps = torch.rand(flat.shape, generator=generator, device=flat.device) < (0.5 if flat.numel() > 1 else 0.0)
    return torch.where(keeps, flat, draws.to(flat.dtype)).view(given.shape)


def copy_apart(values: Tensor, generator: torch.Generator) -> Tensor:
    """Copy each row along a long dimension: with a shift of its own, the other way round, more and more slowly, or with
    all neighbours exchanged.
    """
    sizes = list(values.shape)
    dim = draw_long(values, generator, OF_FIRST if values.dim() > 1 else 1.0)
    size, rows = sizes[dim], (*sizes[:dim], *[1] * (len(sizes) - dim))
    at = torch.arange(size, device=values.device).view(-1, *[1] * (len(sizes) - dim - 1))
    shifts = torch.randint(min(1, size - 1), size // 2 + 1, rows, generator=generator, device=values.device)
    forms = torch.rand(rows, generator=generator, device=values.device)
    slower = (at.double().div(size).square() * size).long()
    shifted, exchanged = (at + shifts) % size, (at ^ 1).clamp(max=size - 1)
    order = torch.where(forms < SHIFTED_SHARE, shifted, torch.where(forms < SLOWER_BELOW, slower, size - 1 - at))
    return values.gather(dim, torch.where(forms > EXCHANGED_ABOVE, exchanged, order).expand(sizes))


def draw_long(tensor: Tensor, generator: torch.Generator, of_first: float = 1.0) -> int:
    """Draw a dimension, mostly a long one."""
    weights = torch.tensor([math.log2(size) for size in tensor.shape])
    weights[0] *= of_first
    chances = weights.cumsum(0)
    return int((chances <= draw_share(generator) * float(chances[-1])).sum().clamp(max=tensor.dim() - 1))


def choose_box(given: Tensor, generator: torch.Generator) -> Tensor:
    """Choose the elements between two places of each dimension."""
    box = torch.ones((), dtype=torch.bool, device=given.device)
    for dim, size in enumerate(given.shape):
        first, last = sorted(draw(size, generator) for _ in range(2))
        places = view_along(torch.arange(size, device=given.device), dim, given.dim())
        box = box & (places >= first) & (places <= last)
    return box


def give_most(values: Tensor, one: Tensor, generator: torch.Generator) -> Tensor:
    """Write `one` to at least `LEAST_EQUAL` of the values."""
    share = LEAST_EQUAL + (1 - LEAST_EQUAL) * draw_share(generator)
    chosen = torch.rand(values.shape, generator=generator, device=values.device) < share
    return torch.where(chosen, one, values)


def is_square(tensor: Tensor) -> bool:
    return tensor.dim() > 1 and tensor.size(-1) == tensor.size(-2)


def mark_path(size: int, generator: torch.Generator) -> Tensor:
    """Mark one element of each row and column of a matrix, the edges of a path through all nodes."""
    nodes = torch.rand(size, generator=generator, device=generator.device).argsort()
    marks = torch.zeros((size, size), dtype=torch.bool, device=generator.device)
    marks[nodes, nodes.roll(-1)] = True
    return marks


def mark_snake(given: Tensor, generator: torch.Generator) -> Tensor:
    """Mark every other row or column of matrices, and between two of them one place, at alternate ends."""
    is_turned = bool(draw(2, generator))
    marks = torch.zeros(given.shape[-2:], dtype=torch.bool, device=given.device)
    rows = marks.mT if is_turned else marks
    rows[::2] = rows[1::4, -1] = rows[3::4, 0] = True
    return marks


def draw_near_end(size: int, generator: torch.Generator) -> int:
    """Draw a place that is mostly near the first or the last."""
    near = min(int(size ** draw_share(generator)), size) - 1
    return near if draw(2, generator) else size - 1 - near


def narrow(numbers: Tensor, low: int, high: int, form: int = 0) -> Tensor:
    """Return numbers of this range without the bits that a shorter integer holds; or small ones (form 1), or large."""
    if form == 0:
        bits = (high - low).bit_length()
        step = 1 << max((width for width in INTEGER_WIDTHS if width < bits - 1), default=bits // 2)
        return (numbers // step * step).clamp_(min=low)
    above = numbers // NEAR_END - low // NEAR_END
    return low + above if form == 1 else high - above


def draw_in_range(low: int, high: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """Draw integers of 64 bits, both bounds included."""
    drawn = torch.empty(like.shape, dtype=torch.int64, device=like.device)
    is_limit = high == torch.iinfo(drawn.dtype).max
    return drawn.random_(low, None if is_limit else high + 1, generator=generator)


def draw_sizes(low: int, high: int, like: Tensor, generator: torch.Generator, *, is_sparse: bool = False) -> Tensor:
    """Draw integers as likely in each power of two above the least, or on either side of zero; if `is_sparse`, most are
    the least, or zero.
    """
    middle = min(max(low, 0), high)
    shares, sides, kept = torch.rand((3, *like.shape), generator=generator, device=like.device, dtype=torch.float64)
    above, below = (((end + 2.0) ** shares - 1).long() for end in (high - middle, middle - low))
    is_above = (sides < 0.5) & (middle < high) | (middle == low)
    drawn = torch.where(is_above, middle + above, middle - below)
    if is_sparse:
        drawn = torch.where(kept < max(like.numel(), 2) ** -draw_share(generator), drawn, middle)
    return drawn.clamp_(low, high)


def draw(high: int, generator: torch.Generator) -> int:
    return int(torch.randint(high, (), generator=generator, device=generator.device))


def draw_share(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator, device=generator.device))


def find_marks(tensor: Tensor) -> tuple[float, float] | None:
    """Return the lowest and the highest value if there are no others."""
    if tensor.dtype is torch.bool:
        return False, True
    low, high = tensor.min(), tensor.max()
    has_others = not all(bool(((part == low) | (part == high)).all()) for part in split_parts(tensor))
    return None if low == high or has_others else (float(low), float(high))


def holds_whole_numbers(tensor: Tensor) -> bool:
    return all(bool((part == part.round()).all()) for part in split_for_device(tensor))


def has_few_digits(tensor: Tensor) -> bool:
    """True for whole numbers, and others that a narrower format represents."""
    parts = split_for_device(tensor)
    return all(bool(((part == part.round()) | ~find_inexact(part)).all()) for part in parts)
