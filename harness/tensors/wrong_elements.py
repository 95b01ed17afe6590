"""Describes which elements of an output are wrong."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import pad

MOST_ELEMENTS = 1 << 28  # of outputs that are described
MOST = 0.99
DENSE = 0.9  # share of a described set that is wrong, if nothing else is said
PERIODS = (2, 4, 8, 16, 32, 64, 128, 256)


def describe_wrong(wrong: Tensor) -> str:
    count, total = int(wrong.count_nonzero()), wrong.numel()
    if count in (0, 1) or total > MOST_ELEMENTS:
        return ""
    if count == total:
        return "all of them"
    hits = [_find_hits(wrong, dimension) for dimension in range(wrong.dim())]
    counts = [int(hit.count_nonzero()) for hit in hits]
    named = [
        f"{_name_indices(hit, hit_count)} in dimension {dimension}"
        for dimension, (hit, hit_count) in enumerate(zip(hits, counts, strict=True))
        if hit_count < hit.numel()
    ]
    if not named:
        return _describe_stretch(wrong.reshape(-1), count)
    cells = prod(counts)
    return " and ".join(named) + ("" if count >= DENSE * cells else f", {count / cells:.1%} of these elements")


def _find_hits(wrong: Tensor, dimension: int) -> Tensor:
    others = [other for other in range(wrong.dim()) if other != dimension]
    return wrong.any(dim=others) if others else wrong


def _name_indices(hit: Tensor, count: int) -> str:
    size = hit.numel()
    first, last = _find_ends(hit)
    if count == 1:
        return f"index {first} of {size}"
    if last - first + 1 == count:
        if last == size - 1:
            return f"the last {count} of {size} indices"
        return f"the first {count} of {size} indices" if first == 0 else f"indices {first} to {last} of {size}"
    for period in PERIODS:
        if period >= size:
            break
        rests = pad(hit, (0, -size % period)).view(-1, period).any(dim=0).nonzero().reshape(-1).tolist()
        if len(rests) <= period // 2 and count == sum((size - 1 - rest) // period + 1 for rest in rests):
            return f"indices of {size} that are {_join(rests)} modulo {period}"
    return f"{count} of {size} indices"


def _find_ends(hit: Tensor) -> tuple[int, int]:
    numbers = hit.to(torch.uint8)
    return int(numbers.argmax()), hit.numel() - 1 - int(numbers.flip(0).argmax())


def _join(numbers: Sequence[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] + 1 == len(numbers):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")


def _describe_stretch(wrong: Tensor, count: int) -> str:
    """`wrong` is flat, and every index of every dimension has wrong elements."""
    total = wrong.numel()
    first, last = _find_ends(wrong)
    length = last - first + 1
    if length < total and count >= DENSE * length:
        if last == total - 1:
            return f"from element {first} in row-major order on"
        return f"elements {first} to {last} in row-major order"
    return "nearly all of them" if count > MOST * total else f"scattered, {count / total:.1%} of all"
