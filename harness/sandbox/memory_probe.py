"""Looks into a worker's memory from outside, in the moment in which it said that a call was over, while it is stopped.

The outputs that it describes must lie there, where it says, element by element: nothing lazy, nothing still to be
written, no row that stands for many. And the outputs of calls before must still be what they were. Only elements
drawn at random are looked at. Not on a GPU, whose memory the judge cannot see.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, TensorSpec

SAMPLES = 16  # of each output


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One element of one output: where it lies in the worker's memory, and which it is in row-major order."""

    output: int
    element: int
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Elements of the outputs of the `call`-th call, and what was in them then."""

    call: int
    places: tuple[Place, ...]
    values: tuple[bytes, ...]

    def count_changed(self, seen: Sequence[bytes | None]) -> int:
        return sum(now != then for now, then in zip(seen, self.values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was seen: `missing` says that outputs were not where they should be, `overwritten` that earlier ones had
    changed. "" where everything was as it must be."""

    missing: str = ""
    overwritten: str = ""


def choose_places(specs: Sequence[TensorSpec], addresses: Sequence[int], source: random.Random) -> list[Place]:
    """Elements of each output, the first and the last among them."""
    places = []
    for output, (spec, address) in enumerate(zip(specs, addresses, strict=True)):
        count = torch.Size(spec.shape).numel()
        if count == 0:
            continue
        for element in {0, count - 1, *(source.randrange(count) for _ in range(SAMPLES))}:
            size_bytes = ITEM_BYTES[spec.dtype]
            where = address + _offset(element, spec) * size_bytes
            places.append(Place(output=output, element=element, address=where, size_bytes=size_bytes))
    return places


def remember(call: int, places: Sequence[Place], outputs: Sequence[Tensor]) -> Past:
    """What lies at these places of outputs that the judge has copies of."""
    values = tuple(_bytes_of(outputs[place.output], place.element) for place in places)
    return Past(call=call, places=tuple(places), values=values)


def judge_sight(
    places: Sequence[Place], seen: Sequence[bytes | None], outputs: Sequence[Tensor], overwritten: str
) -> Sight:
    """Holds what was seen against the outputs as they were copied afterwards."""
    missing = count_differences(places, seen, outputs)
    return Sight(missing=f"{missing} of {len(places)} elements looked at" if missing else "", overwritten=overwritten)


def count_differences(places: Sequence[Place], seen: Sequence[bytes | None], outputs: Sequence[Tensor]) -> int:
    """How many of the elements seen are not bit for bit those of `outputs`. None: there was no memory."""
    return sum(
        found != _bytes_of(outputs[place.output], place.element) for place, found in zip(places, seen, strict=True)
    )


def shares_memory_within(spec: TensorSpec) -> bool:
    """Whether two elements of such a tensor may lie at one place."""
    reach = 0
    for stride, size in sorted(
        (stride, size) for stride, size in zip(spec.stride, spec.shape, strict=True) if size > 1
    ):
        if stride <= reach:
            return 0 not in spec.shape
        reach += stride * (size - 1)
    return False


def _offset(element: int, spec: TensorSpec) -> int:
    """Where the `element`-th element in row-major order lies, in elements from the first."""
    offset = 0
    for size, stride in zip(reversed(spec.shape), reversed(spec.stride), strict=True):
        element, part = divmod(element, size)
        offset += part * stride
    return offset


def _bytes_of(tensor: Tensor, element: int) -> bytes:
    return bytes(tensor.reshape(-1)[element : element + 1].view(torch.uint8).tolist())
