"""Tells how much of a result the candidate's kernels compute, and how much they only move that others computed.

Elements of the result are followed over calls with several inputs. Without the candidate's kernels each is looked for
in device memory: one that the same place holds for all inputs was computed there, and a kernel that moves it, converts
its type or changes its sign computes nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from harness.protocol import TensorSpec
from harness.sandbox.gpu.recording import Graph, Recording
from harness.sandbox.model_session import Run

FEW_CALLS, CALLS = 2, 6  # with different inputs, at first and in the end
ELEMENTS, SEARCHED = 4096, 96  # of an output, that are followed; of these, that may lie anywhere
NARROW_BYTES = 4  # of smaller elements more are equal by chance, which one more call tells
FEWEST = 16  # of fewer, a function such as a maximum may leave all as they are
SLICE_ELEMENTS = 4 << 20  # of memory that are searched at once
MOST_PLACES = 8 << 20  # of elements together; else fewer elements are searched
MOST_BASES = 8
LARGE_PART = 8  # an output has at least this part of all elements
MOST_OUTPUTS = 16  # that are examined; of more it stays unknown whether all are copies
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # of other types, by bytes
_PARTS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}

Replay = Callable[[int, Graph], Run]
Piece = tuple[int, Tensor]  # of memory: address, bytes


class Origins(NamedTuple):
    """Shares of an output's elements: those that the candidate's kernels compute, and those that they copy. The others
    lie in their own places without these kernels, or cannot be recognised.
    """

    computed: float
    copied: float


COMPUTED = Origins(1.0, 0.0)


def measure_computed(recording: Recording, replay: Replay, draws: Iterator[int], source: random.Random) -> float | None:
    """Return the share of what the candidate's kernels write that they compute, None if it cannot be told. `draws` are
    seeds of inputs, the first of usual ones. Raises NotReplayable.
    """
    specs = recording.called.specs
    outputs = [at for at, spec in enumerate(specs) if 0 not in spec.shape]
    chosen = source.sample(outputs, min(len(outputs), MOST_OUTPUTS))
    sizes = {at: math.prod(specs[at].shape) for at in chosen}
    large = [at for at in chosen if sizes[at] * LARGE_PART >= sum(sizes.values())]
    is_narrow = any(getattr(torch, specs[at].dtype).itemsize < NARROW_BYTES for at in large)
    first = _Follower(recording, replay, [next(draws) for _ in range(FEW_CALLS + is_narrow)], large, source)
    if first.varying and all(first.search(track) is None for track in first.varying):
        return 1.0  # as most results, which few calls tell
    follower = _Follower(recording, replay, [next(draws) for _ in range(CALLS)], chosen, source)
    replay(next(draws), "call")  # so that what the candidate's kernels leave in memory is of none of these calls
    found = [(sizes[track.output], follower.conclude(track)) for track in follower.varying]
    computed, copied = (sum(count * origins[part] for count, origins in found if origins) for part in (0, 1))
    is_known = bool(found) and all(origins for _, origins in found) and len(chosen) == len(outputs)
    return computed / (computed + copied) if computed or (is_known and copied) else None


class _Follower:
    """Calls with inputs of these seeds. What the last one leaves in memory stays as it is in the search, so no place
    seems to hold the values of two calls.
    """

    def __init__(
        self, recording: Recording, replay: Replay, seeds: Sequence[int], chosen: Sequence[int], source: random.Random
    ) -> None:
        self._recording, self._replay, self._seeds = recording, replay, seeds
        tracks = [Track.choose(recording.called.specs[at], at, source) for at in chosen]
        for seed in self._seeds:
            replay(seed, "call")
            views = recording.view_outputs()
            for track in tracks:
                track.note(views[track.output])
        self._memory = recording.view_memory()
        self.varying = [track for track in tracks if track.varies]

    def search(self, track: Track) -> bool | None:
        """Return whether inputs are kept, None if all elements lie nowhere."""
        is_kept = True
        for number, seed in enumerate(self._seeds):
            is_kept &= self._replay(seed, "without").inputs_unchanged
            track.look(self._memory, number)
            if track.is_lost:
                return None
        return is_kept

    def conclude(self, track: Track) -> Origins | None:
        is_kept = self.search(track)
        if is_kept is None:
            return COMPUTED
        given = self._recording.list_given(with_inputs=is_kept)
        place = self._recording.called.addresses[track.output]
        origins = track.conclude(self._memory, given, place)
        for number, seed in enumerate(self._seeds if track.bases else ()):
            self._replay(seed, "without")
            for base in track.bases:
                base.look(self._memory, track, number)
        return track.compare_bases(place) if track.bases else origins


@dataclass(slots=True)
class _Places:
    """Elements of one piece of memory, read as `form`, that may be the rows' elements, with equal or opposite sign."""

    piece: int
    form: torch.dtype
    at: Tensor
    rows: Tensor
    is_equal: Tensor
    is_opposite: Tensor

    def list_addresses(self, memory: Sequence[Piece]) -> Tensor:
        return self.at * self.form.itemsize + memory[self.piece][0]

    def keep(self, kept: Tensor) -> None:
        self.at, self.rows = self.at[kept], self.rows[kept]
        self.is_equal, self.is_opposite = self.is_equal[kept], self.is_opposite[kept]


@dataclass(slots=True)
class _Base:
    """A copy in the same order: how many elements of all calls it has, with `equal` and with `opposite` sign."""

    address: int
    form: torch.dtype
    equal: int = 0
    opposite: int = 0
    all: int = 0

    def look(self, memory: Sequence[Piece], track: Track, number: int) -> None:
        wanted = track.calls[number]
        found = torch.full_like(wanted, math.inf)
        for start, content in memory:
            words = view_words(content, self.form)
            at = (self.address - start) // self.form.itemsize + track.offsets
            if bool(((at >= 0) & (at < words.numel())).all()):
                found = track.convert(words[at])
        is_equal = (found == wanted) | wanted.isnan()
        self.equal += int(is_equal.sum())
        self.opposite += int(((found == -wanted) & ~is_equal).sum())
        self.all += len(wanted)


@dataclass(slots=True)
class Track:
    """Elements of one output. Of each that is searched a row of `wanted` has its values, and the next row has them in
    an order of calls that is not theirs: if it is found, too, the values are too common to be recognised.
    """

    output: int
    dtype: torch.dtype
    offsets: Tensor  # in the output's memory
    calls: list[Tensor] = field(default_factory=list)
    wanted: Tensor = field(default_factory=lambda: torch.empty(0))
    limit: int = 0  # rows that are searched
    places: list[_Places] = field(default_factory=list)
    matches: int = 0  # of the search
    bases: list[_Base] = field(default_factory=list)  # of copies in the same order

    @classmethod
    def choose(cls, spec: TensorSpec, output: int, source: random.Random) -> Track:
        dtype = getattr(torch, spec.dtype)
        count = math.prod(spec.shape)
        flat = range(count) if count <= ELEMENTS else [source.randrange(count) for _ in range(ELEMENTS)]
        places = torch.tensor(source.sample(flat, len(flat)), dtype=torch.int64)
        offsets = torch.zeros_like(places)
        for size, stride in zip(reversed(spec.shape), reversed(spec.stride), strict=True):
            offsets += places % size * stride
            places //= size
        if dtype in _PARTS:
            return cls(output, _PARTS[dtype], offsets * 2)
        return cls(output, dtype if dtype in _FLOATS else _BITS[dtype.itemsize], offsets)

    def note(self, output: Tensor) -> None:
        """`output` are bytes."""
        self.offsets = self.offsets.to(output.device)
        self.calls.append(output.view(self.dtype)[self.offsets].to(torch.float64))

    @property
    def values(self) -> Tensor:
        return torch.stack(self.calls, dim=1)

    @property
    def varies(self) -> bool:
        values = self.values
        return bool((values != values[:, :1]).any())

    @property
    def is_lost(self) -> bool:
        """Return whether no element is in any place."""
        return self.limit > 0 and not bool(torch.isin(self._real, self._join([one.rows for one in self.places])).any())

    @property
    def _real(self) -> Tensor:
        return torch.arange(0, self.limit, 2, device=self.wanted.device)

    @property
    def _forms(self) -> tuple[torch.dtype, ...]:
        """In which others may have left it."""
        return next((some for some in (_FLOATS, _INTEGERS) if self.dtype in some), (self.dtype,))

    def look(self, memory: Sequence[Piece], number: int) -> None:
        """Search the elements of the first call; keep the places that hold them in the call `number`, too."""
        if number == 0:
            self._search(memory)
        for one in self.places:
            self._filter(one, view_words(memory[one.piece][1], one.form), number)
        self.places = [one for one in self.places if len(one.at)]

    def _search(self, memory: Sequence[Piece]) -> None:
        values = self.values
        is_usable = values[:, 0].isfinite() & (values[:, 0] != 0)
        chosen = values[is_usable][:SEARCHED]
        self.wanted = torch.cat([torch.stack([one, _shift(one)]) for one in chosen] or [chosen])
        self.limit = len(self.wanted)
        forms = [form for form in self._forms if self._can_hold(form)]
        for number, (_, content) in enumerate(memory):
            for form in forms:
                self._search_piece(number, view_words(content, form), form)

    def _can_hold(self, form: torch.dtype) -> bool:
        """Return whether `form` has the value of any searched element: a narrower one seldom does."""
        values = self.wanted[:, 0]
        return bool((values.to(form).to(torch.float64) == values).any())

    def _search_piece(self, number: int, words: Tensor, form: torch.dtype) -> None:
        for first in range(0, words.numel(), SLICE_ELEMENTS):
            found = self.convert(words[first : first + SLICE_ELEMENTS]).abs()
            while (match := self._match(found, MOST_PLACES - self.matches)) is None:
                self.limit = self.limit // 4 * 2
                for one in self.places:
                    one.keep(one.rows < self.limit)
                self.matches = sum(len(one.at) for one in self.places)
            at, rows = match
            if len(at):
                yes = torch.ones_like(rows, dtype=torch.bool)
                self.places.append(_Places(number, form, at + first, rows, yes, yes.clone()))
                self.matches += len(at)

    def _match(self, found: Tensor, most: int) -> tuple[Tensor, Tensor] | None:
        """Return indices and rows of equal magnitudes, None for too many."""
        ladder, order = self.wanted[: self.limit, 0].abs().sort()
        starts = torch.searchsorted(ladder, found)
        counts = torch.searchsorted(ladder, found, right=True) - starts
        if int(counts.sum()) > most:
            return None
        at = counts.nonzero()[:, 0]
        starts, counts = starts[at], counts[at]
        rising = torch.arange(int(counts.sum()), device=at.device)
        rising -= (counts.cumsum(0) - counts).repeat_interleave(counts)
        return at.repeat_interleave(counts), order[starts.repeat_interleave(counts) + rising]

    def _filter(self, one: _Places, words: Tensor, number: int) -> None:
        found, wanted = self.convert(words[one.at]), self.wanted[one.rows, number]
        is_any = wanted.isnan()
        one.is_equal &= (found == wanted) | is_any
        one.is_opposite &= (found == -wanted) | is_any
        one.keep(one.is_equal | one.is_opposite)

    def _join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat([torch.empty(0, dtype=torch.int64, device=self.offsets.device), *parts])

    def conclude(self, memory: Sequence[Piece], given: Sequence[tuple[int, int]], place: int) -> Origins | None:
        """`given` are addresses and sizes of what the evaluator wrote: an operator may itself move its inputs. The
        output lies at `place`. If copies in the same order are found, these tell more.
        """
        rows = self._join([one.rows for one in self.places])
        is_given = _lie_in(given, self._join([one.list_addresses(memory) for one in self.places]))
        real = self._real
        is_found = torch.isin(real, rows[~is_given])
        found = real[is_found]
        known = found[~torch.isin(found + 1, rows) & self._has_shift(found)]
        self.bases = list(self._find_bases(memory, given, known)) if len(known) >= FEWEST else []
        if bool(is_found.all()) and not self.bases:
            values = self.values
            is_constant = bool((values == values[:, :1]).all(1).any())
            if is_constant or len(known) < max(FEWEST, len(real) / 2):
                return None
        moved = known[~torch.isin(known, self._list_kept(memory, place))]
        copied = int((~torch.isin(moved, rows[is_given])).sum())
        computed = len(real) - len(found) + len(moved) - copied
        return Origins(computed / len(real), copied / len(real))

    def _list_kept(self, memory: Sequence[Piece], place: int) -> Tensor:
        """Return rows of elements that lie in their own place."""
        searched = self._searched_offsets
        kept = [self._join([])]
        for one in self.places:
            own = place + searched[one.rows // 2] * self.dtype.itemsize
            kept.append(one.rows[(one.list_addresses(memory) == own) & one.is_equal & (one.form is self.dtype)])
        return torch.cat(kept)

    @property
    def _searched_offsets(self) -> Tensor:
        values = self.values
        return self.offsets[values[:, 0].isfinite() & (values[:, 0] != 0)]

    def _has_shift(self, rows: Tensor) -> Tensor:
        return (self.wanted[rows] != self.wanted[rows + 1]).any(1)

    def _find_bases(self, memory: Sequence[Piece], given: Sequence[tuple[int, int]], known: Tensor) -> Iterator[_Base]:
        searched = self._searched_offsets
        for form in self._forms:
            some = [one for one in self.places if one.form is form]
            rows = self._join([one.rows for one in some])
            addresses = self._join([one.list_addresses(memory) for one in some])
            is_kept = torch.isin(rows, known) & ~_lie_in(given, addresses)
            bases = (addresses[is_kept] - searched[rows[is_kept] // 2] * form.itemsize).sort().values
            last = len(known) - 1
            in_all = bases[last:][bases[last:] == bases[: max(len(bases) - last, 0)]]
            yield from (_Base(base, form) for base in in_all[:MOST_BASES].tolist())

    def compare_bases(self, place: int) -> Origins:
        best = max(self.bases, key=lambda base: (base.address == place, base.equal + base.opposite))
        copied = best.opposite if best.address == place else best.equal + best.opposite
        return Origins((best.all - best.equal - best.opposite) / best.all, copied / best.all)

    def convert(self, found: Tensor) -> Tensor:
        return found.to(self.dtype).to(torch.float64)


def _lie_in(given: Sequence[tuple[int, int]], addresses: Tensor) -> Tensor:
    found = torch.zeros_like(addresses, dtype=torch.bool)
    for start, size in given:
        found |= (addresses >= start) & (addresses < start + size)
    return found


def _shift(values: Tensor) -> Tensor:
    """Begin with another call, in which the element has a value."""
    usable = (values[1:].isfinite() & (values[1:] != 0) & (values[1:] != values[0])).nonzero()[:, 0]
    return values.roll(-1 - int(usable[0])) if len(usable) else values


def view_words(content: Tensor, form: torch.dtype) -> Tensor:
    return content[: content.numel() // form.itemsize * form.itemsize].view(form)
