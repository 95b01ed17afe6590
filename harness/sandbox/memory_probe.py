"""Compares random elements in a stopped worker's memory with its outputs: lazy, late, shared or changed ones."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.protocol import ITEM_BYTES, TensorSpec
from harness.tensors.outputs import Change, OutputPlaces, Span

SAMPLES = 16  # of each output
REPEATED_PAGES = "parts of an output are the same memory at several addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """`index` is the position in row-major order; `address` is the worker's."""

    output: int
    index: int
    address: int
    size_bytes: int

    @property
    def span(self) -> Span:
        return self.address, self.address + self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierOutputs:
    call: int
    elements: tuple[Element, ...]
    values: tuple[bytes, ...]

    def list_changed(self, seen: Sequence[bytes | None]) -> list[Element]:
        found = zip(self.elements, seen, self.values, strict=True)
        return [element for element, now, then in found if now != then]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    missing: str = ""
    change: Change = Change.NONE
    changed: str = ""


def choose_elements(specs: Sequence[TensorSpec], addresses: Sequence[int], source: random.Random) -> list[Element]:
    elements = []
    for output, (spec, address) in enumerate(zip(specs, addresses, strict=True)):
        count = torch.Size(spec.shape).numel()
        if count == 0:
            continue
        for index in {0, count - 1, *(source.randrange(count) for _ in range(SAMPLES))}:
            size_bytes = ITEM_BYTES[spec.dtype]
            location = address + _offset(index, spec) * size_bytes
            elements.append(Element(output=output, index=index, address=location, size_bytes=size_bytes))
    return elements


def record_elements(call: int, elements: Sequence[Element], outputs: Sequence[Tensor]) -> EarlierOutputs:
    values = tuple(_bytes_of(outputs[element.output], element.index) for element in elements)
    return EarlierOutputs(call=call, elements=tuple(elements), values=values)


def find_changes(
    before: Sequence[EarlierOutputs], seen: Sequence[bytes | None], places: OutputPlaces
) -> tuple[Change, str]:
    rest, change, messages = iter(seen), Change.NONE, []
    for earlier in before:
        changed = earlier.list_changed([next(rest) for _ in earlier.elements])
        if changed:
            change = max(change, places.classify_spans(earlier.call, [element.span for element in changed]))
            age = places.calls - earlier.call
            messages.append(f"{len(changed)} of {len(earlier.elements)} sampled elements, from {age} calls ago")
    return change, "; ".join(messages)


def compare_sample(
    elements: Sequence[Element], seen: Sequence[bytes | None], outputs: Sequence[Tensor], change: Change, changed: str
) -> MemorySample:
    missing = count_differences(elements, seen, outputs)
    message = f"{missing} of {len(elements)} sampled elements" if missing else ""
    return MemorySample(missing=message, change=change, changed=changed)


def count_differences(elements: Sequence[Element], seen: Sequence[bytes | None], outputs: Sequence[Tensor]) -> int:
    """Compares bits. None is unmapped memory."""
    return sum(
        found != _bytes_of(outputs[element.output], element.index)
        for element, found in zip(elements, seen, strict=True)
    )


def _offset(index: int, spec: TensorSpec) -> int:
    offset = 0
    for size, stride in zip(reversed(spec.shape), reversed(spec.stride), strict=True):
        index, part = divmod(index, size)
        offset += part * stride
    return offset


def _bytes_of(tensor: Tensor, index: int) -> bytes:
    return bytes(tensor.reshape(-1)[index : index + 1].view(torch.uint8).tolist())
