"""States after more calls than can be made, by what each call adds to a state or multiplies it by."""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import Tensor

from harness.tensors.outputs import FlatOutputs

State = dict[str, Tensor]
Numbered = Sequence[tuple[int, State]]  # states and after how many calls
Call = Callable[[State], tuple[FlatOutputs, State] | None]  # outputs and the state after it; None: it fails

FARTHEST = 1 << 24  # calls
PERIODS = 2**10 * 3**2 * 5**3 * 7  # a multiple of most numbers of calls after which something else is done
IN_TURN = 1024  # calls one after the other, of which each may do something else
FAR_S, IN_TURN_SHARE = 1.0, 0.7  # for all calls; for those in turn
LEAST_IN_TURN = 256  # that show most that is rare
MOST_TRIED, MOST_FAILED = 2048, 16  # calls; failed ones in a row
SPARE_CALLS = 4  # before an integer overflows
SIGNIFICANT, ROUNDINGS = 16, 8  # changes of a call; roundings beside those of each call
SAMPLED = 4096  # elements, that tell most tensors apart
FEW, MOST_RARE = 8, 64  # one in so many calls is rare; rare ones that are used
RARE_SHARE, RARE_CALLS = 0.5, 2  # of the states that are drawn; calls from rare ones that check correctness
BANDS = (0, 256, 65536)  # calls, where groups of states begin


@dataclass(frozen=True, slots=True, kw_only=True)
class FarStates:
    """`base` is a state, `added` and `factors` are what each call adds to its tensors, or multiplies them by. From the
    states after `usable` numbers of calls, in groups, and after `rare` ones, two calls succeed.
    """

    base: State
    added: dict[str, Tensor] = field(default_factory=dict)
    factors: dict[str, Tensor] = field(default_factory=dict)
    usable: tuple[tuple[int, ...], ...] = ()
    rare: tuple[int, ...] = ()

    def at(self, calls: int) -> State:
        moved = {name: _add(self.base[name], step, calls) for name, step in self.added.items()}
        return self.base | moved | {name: _scale(self.base[name], one, calls) for name, one in self.factors.items()}

    def draw(self, source: random.Random) -> int:
        """Return a number of calls: all groups are as likely."""
        if self.rare and source.random() < RARE_SHARE:
            return source.choice(self.rare)
        return source.choice(source.choice(self.usable))

    def draw_each(self, source: random.Random) -> Iterator[State]:
        """Yield a state of each group, and some rare ones."""
        rare = source.sample(self.rare, min(RARE_CALLS, len(self.rare)))
        for calls in (*map(source.choice, self.usable), *(calls + 1 for calls in rare)):
            yield self.at(calls)

    def find_group(self, calls: int) -> int:
        """Return where its group begins; 0 for a rare number, and for those of the first group."""
        return 0 if calls in self.rare else max(one for one in BANDS if one <= calls)

    def move_to(self, like: State) -> FarStates:
        moved = (
            {name: one.to(like[name].device) for name, one in some.items()}
            for some in (self.base, self.added, self.factors)
        )
        base, added, factors = moved
        return replace(self, base=base, added=added, factors=factors)


def find_far_states(history: Numbered, source: random.Random, call: Call, *, repeats_bits: bool) -> FarStates | None:
    """Extrapolate the states of a `history` of calls in their order. `repeats_bits`: calls with the same inputs give
    the same outputs, so that those that do something else are found.
    """
    number, base = source.choice(history[:-1])
    far, stride = FarStates(base=base), 1
    for name, one in base.items():
        values = [(calls, state[name]) for calls, state in history]
        if one.is_floating_point() and one.element_size() > 1:
            added, factors = _find_sum(values), None
            factors = _find_product(values) if added is None else None
            far.added.update({} if added is None else {name: added})
            far.factors.update({} if factors is None else {name: factors})
        elif not one.is_floating_point() and not one.is_complex():
            step = None if one.dtype is torch.bool else _find_steps(values)
            far.added.update({} if step is None else {name: step})
            if step is None and any(not torch.equal(one, other) for _, other in values):
                stride = PERIODS  # what follows from the number of calls stays as it is
    most = int(min((_count_calls_left(base[name], step) for name, step in far.added.items()), default=FARTHEST))
    if not (far.added or far.factors) or most < 1:
        return None
    return _try(far, _list_numbers(most, stride, number, source), call, is_exact=repeats_bits)


def _list_numbers(most: int, stride: int, number: int, source: random.Random) -> Iterator[tuple[int, bool]]:
    """Yield numbers of calls, and whether they are in turn."""
    if stride > 1:
        yield from ((calls, False) for calls in range(stride, most + 1, stride))
        return
    if PERIODS - 2 - number <= most:
        yield PERIODS - 2 - number, False  # most periods end two calls later
    yield from ((calls, True) for calls in range(min(IN_TURN, most) + 1))
    while True:
        yield int(math.exp(source.uniform(0.0, math.log(most)))), False


def _try(far: FarStates, numbers: Iterator[tuple[int, bool]], call: Call, *, is_exact: bool) -> FarStates | None:
    began_s, usable, failed = time.monotonic(), list[int](), 0
    kinds: defaultdict[tuple[float, ...], list[int]] = defaultdict(list)  # by what the next call but one does
    before = None  # the last number in turn, if a call succeeded
    for _, (calls, is_in_turn) in zip(range(MOST_TRIED), numbers, strict=False):
        spent_s = time.monotonic() - began_s
        if spent_s > FAR_S or failed > MOST_FAILED:
            break
        if calls in usable or (is_in_turn and spent_s > FAR_S * IN_TURN_SHARE):
            continue
        made = call(far.at(calls))
        if is_in_turn:
            if made is not None and before is not None:
                usable.append(before)
                kinds[_describe(*made, far)].append(before)
            before = None if made is None else calls
        elif made is not None and call(made[1]) is not None:
            usable.append(calls)
        failed = 0 if made is not None else failed + 1
    count = sum(map(len, kinds.values()))
    few = [some for some in kinds.values() if FEW * len(some) <= count and 2 * len(kinds) <= count and is_exact]
    rare = [calls for some in few for calls in some[: max(MOST_RARE // len(few), 1)]]
    if few or count < LEAST_IN_TURN:
        rare += [calls for calls in usable[:1] if calls > IN_TURN]  # where most periods end
    ends = (*BANDS[1:], math.inf)
    groups = ([one for one in usable if low <= one < high] for low, high in zip(BANDS, ends, strict=True))
    return replace(far, usable=tuple(map(tuple, filter(None, groups))), rare=tuple(rare)) if usable else None


def _describe(outputs: FlatOutputs, after: State, far: FarStates) -> tuple[float, ...]:
    """Tell apart what calls do, but not how far their state is."""
    left = [one for name, one in after.items() if name not in far.added and name not in far.factors]
    made = [torch.view_as_real(one) if one.is_complex() else one for one in (*outputs.tensors, *left)]
    sums = [part.sum(dtype=torch.float64) for one in made for part in (one, one.flatten()[::3])]
    return tuple(torch.stack(sums).tolist())


def _find_steps(values: Sequence[tuple[int, Tensor]]) -> Tensor | None:
    """Return the equal steps of integers, or the mean of steps in one direction."""
    wide = [(calls, one.to(torch.int64)) for calls, one in values]
    (first, low), (last, high) = wide[0], wide[-1]
    step = wide[1][1] - low
    if wide[1][0] == first + 1 and step.any() and all(torch.equal(one, low + step * (at - first)) for at, one in wide):
        return step
    changes = [later - earlier for (_, earlier), (_, later) in pairwise(wide)]
    is_monotone = any(all(bool((sign * one >= 0).all()) for one in changes) for sign in (1, -1))
    if not is_monotone or not all(bool(one.any()) for one in changes):
        return None
    mean = ((high - low).double() / (last - first)).round().to(torch.int64)
    return mean if mean.any() else None


def _find_sum(values: Sequence[tuple[int, Tensor]]) -> Tensor | None:
    """Return what each call adds, within rounding."""

    def find(values: Sequence[tuple[int, Tensor]]) -> Tensor | None:
        (first, low), (last, high) = values[0], values[-1]
        step = (high.double() - low.double()) / (last - first)
        largest = torch.maximum(low.double().abs(), high.double().abs())
        step = torch.where(step.abs() > SIGNIFICANT * torch.finfo(low.dtype).eps * largest, step, 0.0)
        return step if step.any() and _follow(values, lambda calls: low.double() + step * calls) else None

    return _find_on_sample(find, values)


def _find_product(values: Sequence[tuple[int, Tensor]]) -> Tensor | None:
    """Return the factor of each call, within rounding."""

    def find(values: Sequence[tuple[int, Tensor]]) -> Tensor | None:
        (first, low), (last, high) = values[0], values[-1]
        share = torch.where(low == 0, 1.0, high.double() / low.double())
        if not bool((share > 0).all()):
            return None
        factor = share ** (1.0 / (last - first))
        factor = torch.where((factor - 1).abs() > SIGNIFICANT * torch.finfo(low.dtype).eps, factor, 1.0)
        has_factor = bool((factor != 1).any())
        return factor if has_factor and _follow(values, lambda calls: low.double() * factor**calls) else None

    return _find_on_sample(find, values)


def _find_on_sample(
    find: Callable[[Sequence[tuple[int, Tensor]]], Tensor | None], values: Sequence[tuple[int, Tensor]]
) -> Tensor | None:
    every = max(values[0][1].numel() // SAMPLED, 1)
    if every > 1 and find([(calls, one.flatten()[::every]) for calls, one in values]) is None:
        return None
    return find(values)


def _follow(values: Sequence[tuple[int, Tensor]], expect: Callable[[int], Tensor]) -> bool:
    (first, low), *others = values
    for calls, one in others:
        expected = expect(calls - first)
        allowed = torch.finfo(low.dtype).eps * (calls - first + ROUNDINGS)
        largest = torch.maximum(expected.abs(), low.double().abs())
        if not bool(((one.double() - expected).abs() <= allowed * largest).all()):
            return False
    return True


def _count_calls_left(one: Tensor, step: Tensor) -> float:
    """Return after how many calls integers overflow, or floats no longer tell calls apart."""
    if one.is_floating_point():
        return min(FARTHEST, 1.0 / torch.finfo(one.dtype).eps)
    limits, values, steps = torch.iinfo(one.dtype), one.double(), step.double()
    left = torch.where(steps > 0, limits.max - values, values - limits.min) / steps.abs().clamp(min=1e-9)
    return min(FARTHEST, float(left[step != 0].min()) - SPARE_CALLS)


def _add(one: Tensor, step: Tensor, calls: int) -> Tensor:
    wide = one.double() if one.is_floating_point() else one.to(torch.int64)
    return (wide + step * calls).to(one.dtype)


def _scale(one: Tensor, factor: Tensor, calls: int) -> Tensor:
    """Values that lose digits become zero, as devices may take them."""
    scaled = one.double() * factor**calls
    return torch.where(scaled.abs() < torch.finfo(one.dtype).tiny / torch.finfo(one.dtype).eps, 0.0, scaled).to(
        one.dtype
    )
