"""Locates outputs in the worker's memory, to distinguish reused buffers from other changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.protocol import TensorSpec, storage_bytes
from harness.tensors.output_records import TensorRecord

Span = tuple[int, int]  # addresses of the first byte and behind the last


class Change(IntEnum):
    NONE = 0
    REUSED = 1  # an output of a later call lies in the same memory
    OVERWRITTEN = 2  # none does


@dataclass(frozen=True, slots=True)
class KeptOutputs:
    record: TensorRecord
    call: int
    spans: tuple[Span, ...]


class OutputPlaces:
    """No program may return outputs in the `arena`, since inputs lie there."""

    def __init__(self, arena: Span) -> None:
        self.calls = 0
        self._arena = arena
        self._spans: tuple[Span, ...] = ()  # of the last call
        self._last_calls: dict[Span, int] = {}  # the last call with an output there

    def note_call(self, specs: Sequence[TensorSpec], addresses: Sequence[int]) -> None:
        self.calls += 1
        sizes = map(storage_bytes, specs)
        self._spans = tuple((first, first + size) for first, size in zip(addresses, sizes, strict=True))
        first, end = self._arena
        self._last_calls |= {span: self.calls for span in self._spans if span[1] <= first or end <= span[0]}

    def keep(self, record: TensorRecord) -> KeptOutputs:
        return KeptOutputs(record, self.calls, self._spans)

    def classify(self, kept: KeptOutputs, changed: Sequence[int]) -> Change:
        return self.classify_spans(kept.call, [kept.spans[at] for at in changed])

    def classify_spans(self, call: int, changed: Sequence[Span]) -> Change:
        if not changed:
            return Change.NONE
        return Change.REUSED if all(self._is_reused(call, span) for span in changed) else Change.OVERWRITTEN

    def _is_reused(self, call: int, span: Span) -> bool:
        return any(
            later > call and first <= span[0] and span[1] <= end for (first, end), later in self._last_calls.items()
        )
