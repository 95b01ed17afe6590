"""Widens what is allowed for outputs that seem wrong: by what roundings change, which contains the conditioning."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Outcome, ProblemError, Trial
from harness.evaluation.correctness.allowed_errors import (
    ADDED,
    CHAIN,
    FEW_WRONG,
    FURTHER_MOVES,
    FURTHER_ROUNDINGS,
    MOVES,
    SLIGHT,
    WITHIN_ROUNDINGS,
    WITHIN_SEEDS,
)
from harness.evaluation.correctness.precision import LargestResult, RandomRoundings
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.truth import (
    Truth,
    TruthLeaf,
    compute_truth,
    copy_tensors,
    run_reference,
    run_with_state,
    write_state,
)
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind, is_continuous
from harness.problems.inputs.tensors import FEW_EQUAL, list_changeable, perturb, separate_equal
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import ORDERING
from harness.tensors.outputs import FlatOutputs

Move = tuple[int | None, int, float]  # see `MOVES`
LARGEST_FLOAT16 = torch.finfo(torch.float16).max
MOVED = 1.5**0.5  # times the root mean square of roundings, whose moves are none or one
# After which no other draw of roundings begins; and how many times as long as a call one may take in addition.
WITHIN_S, WITHIN_CALLS = 1.0, 30


def compare_refined(
    reference: Reference,
    truth: Truth,
    outputs: FlatOutputs,
    label: str,
    *,
    kind: InputKind,
    refine: Callable[[Truth], Iterable[Truth]] | None,
) -> tuple[Outcome | None, Trial]:
    outcome, trial = reference.compare(truth, outputs, label, kind)
    is_open = outcome is Outcome.WRONG_VALUE and (
        (orders_inputs(reference.traits) and trial.mismatched <= FEW_EQUAL * trial.elements)
        or _is_slight(trial)
        or _has_loose_chain(reference, truth, kind)
    )
    if outcome is None:
        is_open = trial.lost > 0 and reference.traits.keeps_all and not reference.loaded.problem.tolerance.is_fixed
    for refined in refine(truth) if refine is not None and is_open else ():
        outcome, trial = reference.compare(refined, outputs, label, kind)
        if outcome is None:
            break
    return outcome, trial


def _has_loose_chain(reference: Reference, truth: Truth, kind: InputKind) -> bool:
    """True if roundings of intermediate results may change outputs without limit."""
    if not reference.traits.has_intermediate:
        return False
    may_cancel = reference.loaded.problem.backward
    return kind is not GIVEN or any(leaf.has_steps or (may_cancel and _has_zeros(leaf)) for leaf in truth.leaves)


def _has_zeros(leaf: TruthLeaf) -> bool:
    """Gradients that are zero in one form of a backward pass may be roundings in another."""
    return leaf.reference.is_floating_point() and not bool(leaf.reference.all())


def _is_slight(trial: Trial) -> bool:
    """True if errors are small, or few."""
    ratios = (trial.worst_ratio, trial.whole_ratio or 0.0)
    is_rare = trial.mismatched <= FEW_WRONG * trial.elements
    return is_rare or all(ratio is not None and ratio < SLIGHT for ratio in ratios)


def refine_truth(
    reference: Reference,
    truth: Truth,
    inputs: Sequence[Any],
    state: Mapping[str, Tensor] | None = None,
    kind: InputKind = GIVEN,
) -> Iterator[Truth]:
    """Yield the truth with more and more allowed, from the last refinement that another comparison needed: no output
    counts if intermediate results exceed the range of float16, in which a legitimate program may compute; else what
    roundings of inputs and weights change, in few draws and then in more; what those of intermediate results do.
    """
    known = truth.refined
    if known.truth is not None:
        yield known.truth
    for refine in _list_refinements(reference, inputs, state, kind)[known.count :]:
        before = known.truth or truth
        after = refine(before)
        known.count += 1
        if after is not before:
            known.truth = after
            yield after


def _list_refinements(
    reference: Reference, inputs: Sequence[Any], state: Mapping[str, Tensor] | None, kind: InputKind
) -> list[Callable[[Truth], Truth]]:
    def allow_moves(moves: Sequence[Move], truth: Truth) -> Truth:
        return add_spread(reference, truth, inputs, state, keeps_ties=kind.keeps_equal, moves=moves)

    def exclude_beyond_float16(truth: Truth) -> Truth:
        if not _exceeds_float16(reference, inputs, state):
            return truth
        return replace(truth, leaves=tuple(replace(leaf, is_calm=False) for leaf in truth.leaves))

    draws = (MOVES, FURTHER_MOVES) if reference.format_bits == 32 else (MOVES,)
    refinements: list[Callable[[Truth], Truth]] = []
    if isinstance(kind, DerivedKind) and reference.format_bits == 16:
        refinements.append(exclude_beyond_float16)
    refinements += [partial(allow_moves, moves) for moves in draws]
    if reference.traits.has_intermediate and not kind.has_ties:
        refinements.append(lambda truth: _add_spread_within(reference, truth, inputs, state, kind))
    return refinements


def _exceeds_float16(reference: Reference, inputs: Sequence[Any], state: Mapping[str, Tensor] | None) -> bool:
    if _find_largest(reference, inputs, state) <= LARGEST_FLOAT16:
        return False
    kept = reference.truths
    if kept.largest_given is None:
        kept.largest_given = _find_largest(reference, reference.make_inputs(0), None)
    return kept.largest_given <= LARGEST_FLOAT16


def _find_largest(reference: Reference, inputs: Sequence[Any], state: Mapping[str, Tensor] | None) -> float:
    with suppress(ProblemError, torch.OutOfMemoryError), torch.no_grad(), LargestResult() as watch:
        write_state(reference.model, reference.changing if state is None else state)
        run_reference(reference.loaded, reference.model, copy_tensors(inputs, reference.computes_on))
        write_state(reference.model, reference.changing)
        return float(watch.size)
    return 0.0


def add_spread(
    reference: Reference,
    truth: Truth,
    inputs: Sequence[Any],
    state: Mapping[str, Tensor] | None = None,
    *,
    keeps_ties: bool = False,
    moves: Sequence[Move] = MOVES,
) -> Truth:
    """Add what a rounding of inputs and weights changes, the most of several draws: it contains the conditioning.
    Without memory for it, or if the reference fails on such inputs, it stays unknown.
    """
    dtypes = {one.dtype for one in list_changeable([inputs, reference.model.state_dict()])}
    for seed, roundings, least, takes in _list_moves(reference.traits, moves):
        sizes = [torch.finfo(one).eps * (roundings if one.itemsize > 2 else 1) for one in dtypes]
        widen = partial(_find_reach if least else _widen_spread, moved_by=max([*sizes, least]))
        move = partial(perturb, seed=seed, roundings=roundings, least=least, keeps_ties=keeps_ties)
        compute = partial(_compute_moved, reference, truth, inputs, state, move)
        truth = _widen_leaves(truth, compute, widen, takes)
    if (
        moves is MOVES
        and not keeps_ties
        and orders_inputs(reference.traits)
        and any(leaf.has_steps for leaf in truth.leaves)
    ):
        exchange = partial(_widen_spread, moved_by=0.0)
        for swaps in (False, True):  # of the few inputs that are equal by chance
            move = partial(separate_equal, swaps=swaps)
            compute = partial(_compute_moved, reference, truth, inputs, state, move)
            truth = _widen_leaves(truth, compute, exchange, attrgetter("has_steps"))
    return truth


def _list_moves(
    traits: InputTraits, moves: Sequence[Move]
) -> Iterator[tuple[int | None, int, float, Callable[[TruthLeaf], bool]]]:
    """Yield `moves` with the outputs that they are for. Without products, steps move as far as sums explain."""
    terms = traits.use.terms
    most = sys.maxsize if terms.multiplied else max(math.ceil(ADDED * math.sqrt(terms.added)), 1)
    for seed, roundings, least in moves:
        if least and not traits.keeps_all:
            continue
        with_steps = not least and roundings <= most
        yield seed, roundings, least, partial(_takes_spread, traits, with_steps=with_steps)
        if not least and roundings > most:
            yield seed, most, least, partial(_takes_spread, traits, with_others=False)


def orders_inputs(traits: InputTraits) -> bool:
    return traits.use.has(ORDERING, on_input=True)


def _widen_leaves(
    truth: Truth,
    compute: Callable[[], Truth],
    widen: Callable[[TruthLeaf, TruthLeaf], TruthLeaf],
    takes: Callable[[TruthLeaf], bool],
) -> Truth:
    if not any(map(takes, truth.leaves)):
        return truth
    with suppress(ProblemError, torch.OutOfMemoryError):
        moved = compute()
        if moved.kind == truth.kind:
            pairs = zip(truth.leaves, moved.leaves, strict=True)
            return replace(truth, leaves=tuple(widen(*pair) if takes(pair[0]) else pair[0] for pair in pairs))
    return truth


def _takes_spread(
    traits: InputTraits, leaf: TruthLeaf, *, with_steps: bool = True, with_others: bool = True, within: bool = False
) -> bool:
    """A rounding may decide a step, or which of two results is larger, but not which of two inputs."""
    if leaf.has_steps:
        return with_steps and not orders_inputs(traits)
    return with_others and leaf.reference.is_floating_point() and (not within or is_continuous(traits))


def _add_spread_within(
    reference: Reference,
    truth: Truth,
    inputs: Sequence[Any],
    state: Mapping[str, Tensor] | None,
    kind: InputKind,
) -> Truth:
    """Add what roundings of intermediate results change, beyond the share that a well-conditioned chain explains, in
    one draw at least."""
    dtypes = {one.dtype for one in list_changeable([inputs, reference.model.state_dict()])}
    sizes = (torch.finfo(one).eps * (WITHIN_ROUNDINGS if one.itemsize > 2 else 1) for one in dtypes)
    widen = partial(
        _widen_by_roundings,
        moved_by=max(sizes, default=0.0),
        chain=CHAIN * math.sqrt(reference.traits.use.terms.operators),
    )
    takes = [_takes_spread(reference.traits, leaf, within=True) for leaf in truth.leaves]
    begin_until_s = time.monotonic() + WITHIN_S
    until_s = begin_until_s + WITHIN_CALLS * reference.call_s
    for seed in WITHIN_SEEDS if any(takes) else ():
        if time.monotonic() > begin_until_s:
            break
        with suppress(ProblemError, torch.OutOfMemoryError):
            move = partial(perturb, seed=seed, roundings=WITHIN_ROUNDINGS, keeps_ties=kind.keeps_equal)
            model, moved = _copy_moved(reference, inputs, move)
            with torch.no_grad(), RandomRoundings(seed, WITHIN_ROUNDINGS, until_s):
                write_state(model, reference.changing if state is None else state)
                on_host = reference.computes_on is not None
                found = run_with_state(reference.loaded, model, moved, reference.changing, on_host=on_host)
            leaves = zip(truth.leaves, found.tensors, takes, strict=True)
            truth = replace(
                truth, leaves=tuple(widen(leaf, one) if is_taken else leaf for leaf, one, is_taken in leaves)
            )
    return truth


def _widen(leaf: TruthLeaf, change: Tensor, *, moved_by: float, chain: float = 0.0) -> TruthLeaf:
    """`moved_by` is the largest relative move of a value, which may have a coarser dtype than the output."""
    size = change.abs_().nan_to_num_(0.0, 0.0, 0.0)
    if not leaf.has_steps:
        size /= max(torch.finfo(leaf.reference.dtype).eps, moved_by) * MOVED
        size = size.sub_(leaf.exact.double().abs() * chain).clamp_(min=0.0)
    return replace(leaf, spread=size if leaf.spread is None else torch.maximum(leaf.spread, size))


def _widen_by_roundings(leaf: TruthLeaf, found: Tensor, *, moved_by: float, chain: float) -> TruthLeaf:
    change = found.double() - leaf.reference.double()
    widened = _widen(leaf, change.clone(), moved_by=moved_by, chain=chain)
    if not leaf.is_16_bit:
        return widened
    of_elements = replace(leaf, spread=leaf.element_spread)
    further = _widen(of_elements, change * FURTHER_ROUNDINGS, moved_by=moved_by, chain=chain)
    return replace(widened, element_spread=further.spread)


def _copy_moved(
    reference: Reference, inputs: Sequence[Any], move: Callable[[object], None]
) -> tuple[nn.Module, tuple[Any, ...]]:
    model, moved = copy.deepcopy(reference.model), copy_tensors(inputs, reference.computes_on)
    with torch.no_grad():
        move([moved, model.state_dict()])
    return model, moved


def _compute_moved(
    reference: Reference,
    truth: Truth,
    inputs: Sequence[Any],
    state: Mapping[str, Tensor] | None,
    move: Callable[[object], None],
) -> Truth:
    model, moved = _copy_moved(reference, inputs, move)
    return compute_truth(
        reference.loaded,
        model,
        moved,
        reference.float64_limit,
        state=reference.changing if state is None else state,
        device=reference.computes_on,
        own=truth.reference_outputs if truth.kind == "float64" else None,
        graphs=reference.graphs,
    )


def _widen_spread(leaf: TruthLeaf, moved: TruthLeaf, *, moved_by: float) -> TruthLeaf:
    return _widen(leaf, moved.exact.double() - leaf.exact.double(), moved_by=moved_by)


def _find_reach(leaf: TruthLeaf, moved: TruthLeaf, *, moved_by: float) -> TruthLeaf:
    known = leaf if leaf.reach is None else replace(leaf, spread=leaf.reach)
    return replace(leaf, reach=_widen_spread(known, moved, moved_by=moved_by).spread)
