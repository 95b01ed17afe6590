"""Holds the outputs of a call, and compares them."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import count
from math import prod
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from harness.domain import WireError
from harness.protocol import ITEM_BYTES, TensorSpec, add_state, flatten_value, have_same_nesting, storage_bytes
from harness.tensors.single_pass import find_kernels
from harness.tensors.values import (
    SLICE_ELEMENTS,
    count_bytes,
    cut_pairs,
    cut_slices,
    cut_stretch,
    has_same_bits,
    is_aligned,
)

Place = TypeVar("Place", int, Tensor)
FIRST_ELEMENTS, MOST = 1 << 20, 0.5  # of an output, which tell whether it differs; the share of them that must


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatOutputs:
    tree: dict[str, Any]
    tensors: tuple[Tensor, ...]

    def has_form_of(self, other: FlatOutputs) -> bool:
        mine, theirs = ([(tensor.shape, tensor.dtype) for tensor in one.tensors] for one in (self, other))
        return mine == theirs and have_same_nesting(self.tree, other.tree)

    def with_state(self, state: Mapping[str, Tensor]) -> FlatOutputs:
        """Return the outputs of a call that also returns this state of its module."""
        if not state:
            return self
        tree = add_state(self.tree, len(self.tensors), list(state))
        return FlatOutputs(tree=tree, tensors=(*self.tensors, *state.values()))


def flatten_outputs(value: Any) -> FlatOutputs:
    """Raises WireError for other types than dense tensors in tuples, lists and dicts."""
    tree, tensors = flatten_tensors(value)
    return FlatOutputs(tree=tree, tensors=tuple(tensor.detach().resolve_conj().resolve_neg() for tensor in tensors))


def flatten_tensors(value: Any) -> tuple[dict[str, Any], list[Tensor]]:
    """Raises WireError for values that cannot be sent to another process."""
    tree, tensors = flatten_value(value, torch.is_tensor, by_name=True)
    for tensor in tensors:
        if tensor.is_nested or tensor.layout is not torch.strided:
            layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise WireError(f"a tensor of layout {layout} cannot be sent")
    return tree, tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`largest` is infinite if undefined. `differing` is None if unknown."""

    differing: int | None
    elements: int
    largest: float = math.inf

    def __str__(self) -> str:
        if self.differing is None:
            return f"some of {self.elements} elements differ"
        return f"{self.differing} of {self.elements} elements differ, by up to {self.largest:.3g}"


def find_difference(now: Sequence[Tensor], before: Sequence[Tensor]) -> Difference | None:
    """Return None for equal bits. The devices may differ."""
    differing, largest = 0, 0.0
    for a, b in zip(now, before, strict=True):
        for left, right in cut_pairs(a, b):
            if torch.equal(left.view(torch.uint8), right.view(torch.uint8)):
                continue
            differing += int(_bytes_of(left).ne(_bytes_of(right)).any(dim=1).count_nonzero())
            apart = (_widen(left) - _widen(right)).abs().max().item()
            largest = max(largest, math.inf if math.isnan(apart) else apart)
    if not differing:
        return None
    return Difference(differing=differing, elements=sum(tensor.numel() for tensor in now), largest=largest)


def are_far_apart(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    """Return True if a difference exceeds the largest expected value. Cheaper than a full comparison."""
    return any(_is_far(a, b) for a, b in zip(expected, found, strict=False))


def mostly_differ(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    """Return True if most of the first values of an output differ by more than the largest of them, or are NaN."""
    return any(_differ_at_first(a, b) for a, b in zip(expected, found, strict=False))


def unravel(at: Place, shape: Sequence[int]) -> list[Place]:
    """Do as torch.unravel_index, which imports sympy for seconds."""
    index = []
    for size in reversed(shape):
        index.append(at % size)
        at = at // size
    return index[::-1]


def _are_comparable(expected: Tensor, found: Tensor) -> bool:
    alike = (expected.shape, expected.dtype, expected.device) == (found.shape, found.dtype, found.device)
    return alike and expected.is_floating_point() and expected.numel() > 0


def _is_far(expected: Tensor, found: Tensor) -> bool:
    if not _are_comparable(expected, found):
        return False
    apart, size = 0.0, 0.0
    for _, slices in cut_slices(expected, found, elements=SLICE_ELEMENTS):
        ours, theirs = map(widen_small, slices)
        largest = torch.stack([(theirs - ours).abs_().max(), ours.abs().max()]).tolist()
        if any(map(math.isnan, largest)):
            return False
        apart, size = max(apart, largest[0]), max(size, largest[1])
    return apart > size


def _differ_at_first(expected: Tensor, found: Tensor) -> bool:
    if not _are_comparable(expected, found):
        return False
    _, (ours, theirs) = next(cut_slices(expected, found, elements=FIRST_ELEMENTS))
    ours, theirs = ours.double(), theirs.double()
    size = ours.nan_to_num(0.0, 0.0, 0.0).abs().max()
    is_near = ((theirs - ours).abs() <= size) | (theirs == ours) | ours.isnan()
    return bool(is_near.double().mean() < 1 - MOST)


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.view(torch.uint8).view(tensor.numel(), -1)


def widen_small(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < 4 else tensor


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()


STRETCHES, STRETCH_ELEMENTS = 64, 16 << 10
LEAST_BYTES = 4 << 20  # smaller outputs are copied whole


@dataclass(frozen=True, slots=True)
class Sample:
    firsts: tuple[tuple[int, ...], ...]

    def take(self, output: int, tensor: Tensor) -> Tensor:
        end = tensor.numel()
        parts = [cut_stretch(tensor, first, min(first + STRETCH_ELEMENTS, end)) for first in self.firsts[output]]
        return torch.cat(parts) if parts else tensor.new_empty(0)

    def take_all(self, outputs: FlatOutputs) -> FlatOutputs:
        return replace(outputs, tensors=tuple(map(self.take, count(), outputs.tensors)))


def choose_sample(specs: Sequence[TensorSpec], source: random.Random) -> Sample | None:
    """Include each output's end, where kernels fail most. Return None for small outputs."""
    counts = [prod(spec.shape) for spec in specs]
    if sum(count * ITEM_BYTES[spec.dtype] for count, spec in zip(counts, specs, strict=True)) <= LEAST_BYTES:
        return None
    return Sample(tuple(_choose_firsts(count, source) for count in counts))


def _choose_firsts(count: int, source: random.Random) -> tuple[int, ...]:
    stretches = -(-count // STRETCH_ELEMENTS)
    chosen = source.sample(range(stretches), min(stretches, STRETCHES))
    last = stretches - 1
    if stretches and last not in chosen:
        chosen[0] = last
    return tuple(stretch * STRETCH_ELEMENTS for stretch in sorted(chosen))


KEPT_BYTES = 64 << 20  # of tensors that are kept themselves
WORD_BYTES, ROW_WORDS = 4, 1 << 20
ROWS_AT_ONCE = {"cpu": 1, "cuda": 16}  # on a CPU few enough for its cache, on a GPU enough to fill it


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """`digests` has a number per slice of large tensors, with a secret key. `skipped` positions may change."""

    elements: int
    tensors: tuple[Tensor, ...] = ()
    digests: tuple[Tensor, ...] = ()
    skipped: frozenset[int] = frozenset()

    @classmethod
    def of(cls, tensors: Sequence[Tensor], skipped: frozenset[int] = frozenset()) -> TensorRecord:
        kept = _leave_out(tensors, skipped)
        if count_bytes(kept) <= KEPT_BYTES:
            return cls(sum(tensor.numel() for tensor in kept), tensors=kept, skipped=skipped)
        return cls.digested(kept, skipped)

    @classmethod
    def digested(cls, tensors: Sequence[Tensor], skipped: frozenset[int] = frozenset()) -> TensorRecord:
        """For tensors whose memory will be overwritten."""
        elements = sum(tensor.numel() for tensor in tensors)
        return cls(elements, digests=tuple(map(_digest, tensors)), skipped=skipped)

    def list_changed(self, now: Sequence[Tensor]) -> list[int]:
        """Return positions. NaN equals itself; 0.0 differs from -0.0. The devices may differ."""
        places = [at for at in range(len(now)) if at not in self.skipped]
        known = self.digests or self.tensors
        return [at for at, before in zip(places, known, strict=True) if not self._is_same(now[at], before)]

    def _is_same(self, now: Tensor, before: Tensor) -> bool:
        return torch.equal(_digest(now), before) if self.digests else has_same_bits(now, before)

    def find_difference(self, now: Sequence[Tensor]) -> Difference | None:
        """Return None for equal bits."""
        if not self.digests:
            return find_difference(_leave_out(now, self.skipped), self.tensors)
        return Difference(differing=None, elements=self.elements) if self.list_changed(now) else None


def _leave_out(tensors: Sequence[Tensor], skipped: frozenset[int]) -> tuple[Tensor, ...]:
    return tuple(tensor for at, tensor in enumerate(tensors) if at not in skipped)


def _digest(tensor: Tensor) -> Tensor:
    """Sum rows of words times random numbers, modulo 2^64: equal by chance once in 2^32."""
    key = _draw_key(ROW_WORDS).to(tensor.device)  # not kept there: it could hold a far larger block of torch's cache
    item_bytes = tensor.element_size()
    size_bytes = tensor.numel() * item_bytes
    word_bytes = 1 if size_bytes % WORD_BYTES else WORD_BYTES
    row_bytes = ROW_WORDS * word_bytes
    if word_bytes == WORD_BYTES and tensor.is_contiguous() and is_aligned(tensor, WORD_BYTES):
        whole = tensor.detach().view(-1).view(torch.int32)
        if kernels := find_kernels(whole, dtypes=(torch.int32,)):
            return cast("Tensor", kernels.sum_words(whole, key)).cpu()
    sums = torch.zeros(-(-size_bytes // row_bytes), dtype=torch.int64, device=tensor.device)
    elements = ROWS_AT_ONCE[tensor.device.type] * row_bytes // item_bytes
    for first, (part,) in cut_slices(tensor.detach(), elements=elements):
        words, row = _as_words(part, word_bytes), first * item_bytes // row_bytes
        rows, rest = divmod(words.numel(), ROW_WORDS)
        sums[row : row + rows] = (words[: rows * ROW_WORDS].view(rows, ROW_WORDS) * key).sum(dim=1)
        if rest:  # the tensor's end
            sums[row + rows] = (words[-rest:] * key[:rest]).sum()
    return sums.cpu()


def _as_words(part: Tensor, word_bytes: int) -> Tensor:
    if word_bytes == 1:
        return part.view(torch.uint8).long()
    return (part if is_aligned(part, WORD_BYTES) else part.clone()).view(torch.int32).long()


@cache
def _draw_key(words: int) -> Tensor:
    generator = torch.Generator().manual_seed(secrets.randbits(62))
    limits = torch.iinfo(torch.int64)
    return torch.randint(limits.min, limits.max, (words,), generator=generator)


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
