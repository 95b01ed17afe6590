"""Finds tensors that share elements, and not only a piece of memory, with others."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import torch

from harness.protocol import ITEM_BYTES, TensorSpec, storage_bytes

MOST_UNITS = 1 << 30  # of memory between the first and the last of several; more are taken for separate
PART = 1 / 16  # of all elements, in bytes
Place = tuple[int, TensorSpec]  # address


def find_overlapping(addresses: Sequence[int], specs: Sequence[TensorSpec]) -> frozenset[int]:
    """Return their positions."""
    places = [(address, spec, at) for at, (address, spec) in enumerate(zip(addresses, specs, strict=True))]
    found = set[int]()
    for group in _group(sorted((one for one in places if storage_bytes(one[1])), key=lambda one: one[0])):
        near = tuple((address - group[0][0], spec) for address, spec, _ in group)
        found.update(group[at][2] for at in _find_overwritten(near) | _find_overwritten(near, is_reversed=True))
    return frozenset(found)


def share_much(addresses: Sequence[int], specs: Sequence[TensorSpec]) -> bool:
    """Return whether common elements save more than `PART` of the memory, unlike a view of the last of many steps."""
    sizes = [math.prod(spec.shape) * ITEM_BYTES[spec.dtype] for spec in specs]
    shared = [sizes[at] for at in find_overlapping(addresses, specs)]
    return bool(shared) and sum(shared) - max(shared) > PART * sum(sizes)


def _group(places: Sequence[tuple[int, TensorSpec, int]]) -> Iterator[list[tuple[int, TensorSpec, int]]]:
    """Yield those, of two or more, whose ranges of addresses meet."""
    group, end = list[tuple[int, TensorSpec, int]](), 0
    for place in places:
        if place[0] >= end:
            if len(group) > 1:
                yield group
            group = []
        group.append(place)
        end = max(end, place[0] + storage_bytes(place[1]))
    if len(group) > 1:
        yield group


@lru_cache
def _find_overwritten(places: Sequence[Place], *, is_reversed: bool = False) -> frozenset[int]:
    """Write marks into a model of the memory, one after the other."""
    unit = math.gcd(*(size for start, spec in places for size in (start, ITEM_BYTES[spec.dtype])))
    count = max(start + storage_bytes(spec) for start, spec in places) // unit
    if count > MOST_UNITS:
        return frozenset()
    memory = torch.zeros(count, dtype=torch.uint8)
    views = [_view(memory, start // unit, spec, ITEM_BYTES[spec.dtype] // unit) for start, spec in places]
    order = list(enumerate(views))[:: -1 if is_reversed else 1]
    for at, view in order:
        view.fill_(at % 256)
    return frozenset(at for at, view in order if bool((view != at % 256).any()))


def _view(memory: torch.Tensor, start: int, spec: TensorSpec, units: int) -> torch.Tensor:
    return memory.as_strided((*spec.shape, units), (*(units * stride for stride in spec.stride), 1), start)
