"""Locates outputs in the worker's memory, to distinguish reused buffers from other changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.protocol import TensorSpec, storage_bytes
from harness.tensors.output_records import TensorRecord

Span = tuple[int, int]  # addresses of the first byte and behind the last
MOST_MOVES = 2  # calls whose outputs work memory may overwrite: a CUDA graph gets other memory than its warm-up


class Change(IntEnum):
    NONE = 0
    REUSED = 1  # an output of a later call lies in the same memory, or none does in at most MOST_MOVES calls
    OVERWRITTEN = 2  # none does in more calls


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
        self._overwritten: set[int] = set()  # calls whose outputs changed, and no later output lay there

    def note_call(self, specs: Sequence[TensorSpec], addresses: Sequence[int]) -> None:
        self.calls += 1
        sizes = map(storage_bytes, specs)
        self._spans = tuple((first, first + size) for first, size in zip(addresses, sizes, strict=True))
        self._last_calls |= {span: self.calls for span in self._spans if not self._is_in_arena(span)}

    def keep(self, record: TensorRecord) -> KeptOutputs:
        return KeptOutputs(record, self.calls, self._spans)

    def classify(self, kept: KeptOutputs, changed: Sequence[int]) -> Change:
        return self.classify_spans(kept.call, [kept.spans[at] for at in changed])

    def classify_spans(self, call: int, changed: Sequence[Span]) -> Change:
        if not changed:
            return Change.NONE
        if all(self._is_reused(call, span) for span in changed):
            return Change.REUSED
        self._overwritten.add(call)
        may_move = self.calls > call and not any(map(self._is_in_arena, changed))
        return Change.REUSED if may_move and len(self._overwritten) <= MOST_MOVES else Change.OVERWRITTEN

    def _is_in_arena(self, span: Span) -> bool:
        return span[0] < self._arena[1] and self._arena[0] < span[1]

    def _is_reused(self, call: int, span: Span) -> bool:
        return any(
            later > call and first <= span[0] and span[1] <= end for (first, end), later in self._last_calls.items()
        )
