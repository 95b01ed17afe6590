"""Plans the calls that check correctness, and makes them on demand, or ahead in host memory if the device has too
little.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from harness.domain import Problem, ProblemError
from harness.evaluation.correctness.calls import CallMaker, Exercise, select_calm
from harness.evaluation.correctness.input_plan import RERUNS, plan_kinds
from harness.evaluation.correctness.other_states import (
    VARIED,
    Changes,
    describe_change,
    find_after,
    has_finite_values,
    has_given_state,
    scale_large_parts,
)
from harness.evaluation.correctness.reference import SMALL_CALL_S, Reference
from harness.evaluation.correctness.truth import Expected, copy_tensors
from harness.evaluation.correctness.variations import CutForm, find_nearby, make_other_weights
from harness.evaluation.memory_plan import TRIALS, MemoryPlan
from harness.problems.inputs.kind import GIVEN, ROUNDED, DerivedKind, InputKind, may_be_rounded
from harness.problems.inputs.kinds import MIXED, find_kind, list_declared
from harness.problems.inputs.traits import exchange_part, exchange_slices, list_exchangeable

# Changes of earlier inputs, and fewer where a call takes long; calls with reordered ones of small problems. Larger
# inputs, and those of calls that take longer, are not altered.
ALTERED_CALLS, FEW_ALTERED, REORDERED_CALLS = 6, 2, 2
ALTERED_BYTES, ALTERED_CALL_S = 1 << 30, 0.5
REORDERED_DIMS = 2  # in which slices change places, one after the other
UNUSUAL_INPUTS = 2  # that lead to unusual states
UNUSUAL_CALLS = (1, 16)  # in a row with the same inputs, the second of small problems
MOST_UNUSUAL, UNUSUAL_TRIED, QUICK_S = 8, 8, 0.0025  # where calls are so quick: inputs, chosen among some of each kind
CUTS: tuple[CutForm, ...] = ("odd", "blocks", "even", "even")
FEW_CUTS = 2  # where calls take longer
WEIGHTS_IN_A_ROW: tuple[tuple[Changes, ...], ...] = ((), ("parts",), ("parts", "one"))
PARTLY_OTHER, VARIED_WEIGHTS = 5, 3  # dynamic weights of which a part differs; of other sizes and signs


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """`make` returns the calls (none if the step does not apply). `repeats` repeats an earlier call instead.
    `changes_weights` requires writable weights. `varies_inputs`: of such steps, slow candidates take few.
    """

    name: str
    make: Callable[[CallMaker], Iterable[Exercise]]
    repeats: bool = False
    changes_weights: bool = False
    varies_inputs: bool = False


def take_inputs(kind: InputKind) -> PlannedCalls:
    return PlannedCalls(kind.name, lambda maker: maker.make(kind), varies_inputs=True)


def _make_row(maker: CallMaker) -> Iterator[Exercise]:
    """Start the second call from the state that the first left, the next from what it left with other parts, as users
    change a part of a cache, and the others from states that are new to the candidate. Only one call exists at a time.
    """
    made = [maker.make_declared(GIVEN)]
    left = made[0].expected.truth.state_after
    yield made.pop()
    made = [_make_from(maker, left, "second_in_a_row", continues=True)]
    after, dynamic = made[0].expected.truth.state_after, maker.reference.dynamic
    yield made.pop()
    own = {name: tensor for name, tensor in after.items() if name not in dynamic}
    changed = scale_large_parts(maker.reference, own, maker.source) if has_given_state(maker.reference) else None
    if changed is not None:
        yield _make_from(maker, after | changed, "given_state")
    unusual = _list_unusual(maker) if has_given_state(maker.reference) else []
    for given in _list_states(maker):
        yield _make_from(maker, given, "given_state")
        if unusual:
            at = maker.source.randrange(maker.source.randrange(len(unusual)) + 1)  # more often one of the first
            yield from _make_unusual(maker, given, *unusual[at])
    for kind, seed in unusual[: MOST_UNUSUAL if _is_quick(maker.reference) else UNUSUAL_INPUTS]:
        for calls in UNUSUAL_CALLS if maker.reference.is_small else UNUSUAL_CALLS[:1]:
            with suppress(ProblemError):
                given = _find_state_after(maker, kind, seed, calls)
                is_given = calls == 1 and maker.source.random() < 0.5
                yield from _make_unusual(maker, given, kind, next(maker.seeds), is_given=is_given)


def _is_quick(reference: Reference) -> bool:
    return reference.is_small and reference.call_s <= QUICK_S


def _list_unusual(maker: CallMaker) -> list[tuple[DerivedKind, int]]:
    """Return kinds and seeds of inputs; where calls are quick, first one for each way in which they change the state,
    and the rarest way first.
    """
    kinds, reference = maker.reference.derived_kinds, maker.reference
    tried = [(kind, next(maker.seeds)) for _ in range(UNUSUAL_TRIED) for kind in maker.source.sample(kinds, len(kinds))]
    if not _is_quick(reference):
        return tried
    ways = dict[tuple[DerivedKind, int], tuple[float, ...]]()
    for kind, seed in tried:
        with suppress(ProblemError):
            after = find_after(reference, reference.changing, seed, kind.name)
            ways[kind, seed] = describe_change(reference.changing, after)
    of_each = {way: one for one, way in ways.items()}
    first = [of_each[way] for way, _ in reversed(Counter(ways.values()).most_common())]
    return [*first, *(one for one in ways if one not in first)][:MOST_UNUSUAL]


def _list_states(maker: CallMaker) -> Iterator[dict[str, Tensor]]:
    """Yield states after several calls with given inputs, or after many, which exist one at a time."""
    later, far = maker.reference.later, maker.reference.far
    if later:
        yield from later[:-1] if maker.reference.is_small else (maker.source.choice(later),)
        yield later[-1]
    else:
        yield from (_find_state_after(maker, GIVEN, next(maker.seeds)) for _ in range(2))
    if far is not None and has_given_state(maker.reference):
        yield from far.draw_each(maker.source)


def _make_unusual(
    maker: CallMaker, given: dict[str, Tensor], kind: DerivedKind, seed: int, *, is_given: bool = False
) -> Iterator[Exercise]:
    """Make a call with inputs of the kind, or given ones for a state that such left, if outputs can be compared."""
    with suppress(ProblemError):
        if all(map(has_finite_values, given.values())):
            made = _make_from(maker, given, "given_state", kind=GIVEN if is_given else kind, seed=seed)
            calm = select_calm(maker.reference, made.expected, made.seed, kind, inputs=made.inputs, state=given)
            if calm is not None:
                yield replace(made, kind=kind.take_variant(made.seed), expected=calm)


def _find_state_after(maker: CallMaker, kind: InputKind, seed: int, calls: int = 1) -> dict[str, Tensor]:
    state = maker.reference.changing
    for _ in range(calls):
        state = find_after(maker.reference, state, seed, kind.name)
    return state


def _make_from(
    maker: CallMaker,
    given: dict[str, Tensor],
    label: str,
    *,
    continues: bool = False,
    kind: InputKind = GIVEN,
    seed: int | None = None,
) -> Exercise:
    reference, seed = maker.reference, next(maker.seeds) if seed is None else seed
    inputs = reference.make_inputs(seed, kind.name)
    expected = Expected(partial(reference.truth_of, inputs, given))
    state = None if continues else reference.keep(given)
    return Exercise(label=label, seed=seed, inputs=inputs, expected=expected, state=state, continues=continues)


def _make_with_other_weights(maker: CallMaker) -> Iterator[Exercise]:
    """A candidate that recognises weights by samples uses those of the call before in every second call, unless the
    part that differs has some of the samples.
    """
    reference = maker.reference
    if not reference.loaded.problem.dynamic_weights:
        yield from _make_with_drawn_weights(maker, next(maker.seeds))
        return
    for drawn in (next(maker.seeds) for _ in range(PARTLY_OTHER)):
        for changes in WEIGHTS_IN_A_ROW:
            yield from _make_with_drawn_weights(maker, drawn, changes)
    for _ in range(VARIED_WEIGHTS if has_given_state(reference) else 0):
        with suppress(ProblemError):
            yield from _make_with_varied_weights(maker, next(maker.seeds))


def _make_with_drawn_weights(maker: CallMaker, drawn: int, changes: Sequence[Changes] = ()) -> Iterator[Exercise]:
    reference = maker.reference
    other = make_other_weights(reference, drawn, changes=changes)
    if other is not None:
        seed = next(maker.seeds)
        inputs = reference.make_inputs(seed)
        yield Exercise(
            label=OTHER_WEIGHTS.name,
            seed=seed,
            inputs=inputs,
            expected=Expected(partial(other.truth_of, reference, inputs)),
            weights=reference.keep(other.state),
            check="weights_packed",
        )


def _make_with_varied_weights(maker: CallMaker, drawn: int) -> Iterator[Exercise]:
    """Weights may be as large, and of any sign, as changed inputs. Raises ProblemError."""
    reference, seed, kind = maker.reference, next(maker.seeds), find_kind(VARIED)
    other = make_other_weights(reference, drawn, varied=True)
    if other is None:
        return
    inputs = reference.make_inputs(seed)
    made = Expected(partial(other.truth_of, reference, inputs))
    state = {name: other.state[name] for name in reference.changing}
    expected = select_calm(reference, made, seed, kind, inputs=inputs, state=state)
    if expected is not None:
        weights = reference.keep(other.state)
        yield Exercise(label=OTHER_WEIGHTS.name, seed=seed, inputs=inputs, expected=expected, weights=weights)


def _make_nearby(maker: CallMaker) -> Iterator[Exercise]:
    for form in CUTS if maker.reference.is_small else CUTS[:FEW_CUTS]:
        seed = next(maker.seeds)
        nearby = find_nearby(maker.reference, maker.reference.make_inputs(seed), maker.source, form)
        if nearby is not None:
            yield Exercise(
                label=NEARBY_SHAPE.name,
                seed=seed,
                inputs=nearby.inputs,
                expected=nearby.expected,
                footprint=nearby.footprint,
                check="shape_specialised",
            )


def _make_altered(maker: CallMaker) -> Iterator[Exercise]:
    """Differ from the inputs of the call before in one element, or a part, of one argument: a candidate that keeps
    results for samples of its inputs returns the earlier ones.
    """
    reference, before = maker.reference, maker.make_declared(GIVEN)
    yield before
    places = list_exchangeable(before.inputs, reference.traits)
    changes = [(place, only_one) for place in places for only_one in (True, False)]
    inputs = reference.make_inputs(before.seed)
    most = ALTERED_CALLS if reference.call_s <= SMALL_CALL_S else FEW_ALTERED
    for place, only_one in maker.source.sample(changes, min(len(changes), most)):
        seed = next(maker.seeds)
        exchange_part(inputs, reference.make_inputs(seed), place, seed, only_one=only_one)
        yield _expect_altered(reference, copy_tensors(inputs), seed)


def _make_reordered(maker: CallMaker) -> Iterator[Exercise]:
    """Differ from the inputs of the call before in the order of slices: against results that are kept for sums."""
    reference, seed = maker.reference, next(maker.seeds)
    for count in range(1 + REORDERED_DIMS) if may_be_rounded(reference.traits) else ():
        inputs = reference.make_inputs(seed)
        if exchange_slices(inputs, reference.traits, seed, count=count):
            yield _expect_altered(reference, inputs, seed, ROUNDED)


def _expect_altered(reference: Reference, inputs: tuple[Any, ...], seed: int, kind: InputKind = GIVEN) -> Exercise:
    expected = reference.expect(inputs, own_first=reference.compares_own_first)
    return Exercise(label=ALTERED.name, seed=seed, inputs=inputs, expected=expected, kind=kind)


def _count_reordered(reference: Reference) -> int:
    if reference.is_small:
        return REORDERED_CALLS
    return int(reference.need.inputs_bytes <= ALTERED_BYTES and reference.call_s <= ALTERED_CALL_S)


ALTERED = PlannedCalls("altered", _make_altered, varies_inputs=True)
REORDERED = PlannedCalls("altered", _make_reordered, varies_inputs=True)
CALLS_IN_A_ROW = PlannedCalls("calls_in_a_row", _make_row)
NEARBY_SHAPE = PlannedCalls("nearby_shape", _make_nearby)
OTHER_WEIGHTS = PlannedCalls("other_weights", _make_with_other_weights, changes_weights=True)
RERUN = PlannedCalls("rerun", lambda _: (), repeats=True)
FRESH = take_inputs(GIVEN)


def plan_calls(
    problem: Problem,
    *,
    is_small: bool,
    changes_state: bool,
    source: random.Random,
    derived: Sequence[DerivedKind] = (),
    reordered: int = 0,
) -> tuple[PlannedCalls, ...]:
    """Begin with the problem's own inputs. Other kinds and repetitions follow in secret order, then other declared
    properties and a last repetition.
    """
    kinds = plan_kinds(problem, derived, is_small=is_small)
    others = [take_inputs(kind) for kind in kinds if kind is not GIVEN]
    others += (
        [RERUN] * (RERUNS - 1) * is_small
        + [ALTERED] * (reordered > 0)
        + [REORDERED] * reordered
        + [FRESH] * kinds.count(GIVEN)
    )
    source.shuffle(others)
    properties = _list_properties(problem, changes_state=changes_state)
    return (*[FRESH] * TRIALS, *others, *properties, RERUN)


def _list_properties(problem: Problem, *, changes_state: bool) -> tuple[PlannedCalls, ...]:
    """Return the steps of properties that the problem declares or has."""
    wanted = {
        CALLS_IN_A_ROW: changes_state,
        NEARBY_SHAPE: problem.dynamic_shapes,
        OTHER_WEIGHTS: problem.dynamic_weights,
    }
    return tuple(step for step, is_wanted in wanted.items() if is_wanted)


def plan_few_steps(
    problem: Problem, *, changes_state: bool, source: random.Random, derived: Sequence[DerivedKind] = ()
) -> tuple[PlannedCalls, ...]:
    """Plan for cases that are not checked in full: a random third of the declared distributions and the `derived`
    kinds, at least two calls.
    """
    declared = list_declared(problem)
    named = [kind for kind in declared if kind.name in problem.distributions]
    kinds = [*source.sample(named, -(-len(named) // 3)), *declared[len(named) :], *derived]
    source.shuffle(kinds)
    properties = _list_properties(problem, changes_state=changes_state)
    return (*[FRESH] * (1 if kinds else 2), *map(take_inputs, kinds), *properties)


def reduce_steps(steps: Sequence[PlannedCalls], plan: MemoryPlan) -> tuple[PlannedCalls, ...]:
    if plan.stress:
        return tuple(steps[TRIALS - plan.trials :])
    return (*[FRESH] * plan.trials, *(step for step in steps if step is CALLS_IN_A_ROW), RERUN)


class Exercises(CallMaker):
    """Makes the calls of the planned steps; `fully` plans all of them."""

    def __init__(self, reference: Reference, seeds: Iterator[int], *, fully: bool = True) -> None:
        super().__init__(reference, seeds)
        problem, changes_state, derived = reference.loaded.problem, reference.changes_state, reference.derived_kinds
        if fully:
            steps = plan_calls(
                problem,
                is_small=reference.is_small,
                changes_state=changes_state,
                source=self.source,
                derived=derived,
                reordered=_count_reordered(reference),
            )
        else:
            if reference.call_s > SMALL_CALL_S:
                derived = tuple(self.source.sample(derived, -(-len(derived) // 2)))
            steps = plan_few_steps(problem, changes_state=changes_state, source=self.source, derived=derived)
        self.steps = reduce_steps(steps, reference.plan) if fully or not reference.plan.stress else steps
        self._ahead: dict[int, tuple[Exercise, ...]] = {}

    def list_further(self) -> Iterator[PlannedCalls]:
        """Repeat derived and mixed inputs, and altered ones, without end."""
        declared = [kind for kind in list_declared(self.reference.loaded.problem) if kind is MIXED]
        steps = [*map(take_inputs, (*declared, *self.reference.derived_kinds)), ALTERED, REORDERED]
        while self.reference.plan.stress and not self.are_made_ahead:
            yield from self.source.sample(steps, len(steps))

    def make_ahead(self) -> None:
        self._ahead = {index: tuple(step.make(self)) for index, step in enumerate(self.steps)}

    @property
    def are_made_ahead(self) -> bool:
        return bool(self._ahead)

    def take(self, index: int) -> Iterable[Exercise]:
        """Return new calls each time unless they were made ahead."""
        return self._ahead.pop(index) if self._ahead else self.steps[index].make(self)
