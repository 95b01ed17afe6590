"""Learns the traits of a problem's inputs from one watched run, and plans which kinds check correctness."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import InputContract, Problem, ProblemError
from harness.evaluation.correctness.draw_watch import DrawWatch
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.inputs.draws import Draw
from harness.problems.inputs.inference import complete_contract
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.kinds import list_declared
from harness.problems.inputs.rare import Draws
from harness.problems.inputs.tensors import PATTERNS, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorCalls, OperatorUse, Terms
from harness.protocol import KEPT_CALLS, list_leaves
from harness.tensors.values import count_bytes, list_tensors

RERUNS = 3  # repetitions of earlier calls, where calls cost little; else 1
OTHER_SEED = 1  # of inputs that are compared with the given ones
META = torch.device("meta")
MOST_WATCHED_BYTES = 1 << 30  # of inputs, whose intermediate results are kept as well


def learn_traits(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    *,
    changing: dict[str, Tensor],
    device: torch.device,
) -> InputTraits:
    """Return unknown traits if the problem allows only given inputs, or if the watched reference fails."""
    use = None if loaded.problem.only_as_given else watch_reference(loaded, model, inputs, changing, device)
    if use is None:
        return loaded.describe_unwatched(inputs)
    draws = Draws()
    contracts, redrawn = infer_contracts(loaded, inputs, use, draws, device)
    return InputTraits(
        problem=loaded.problem,
        is_known=True,
        use=use,
        contracts=tuple(contracts),
        redrawn=redrawn,
        draws_integers=draws.integers,
        fewest_drawn=draws.fewest,
        returns_floats=any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs),
        returns_16_bits=any(tensor.is_floating_point() and tensor.element_size() == 2 for tensor in outputs),
        has_state=bool(changing) or any(map(_is_floating, model.state_dict().values())),
        weights=tuple(one.detach() for one in model.parameters() if one.dim() == 2 and one.is_floating_point()),
    )


def infer_contracts(
    loaded: LoadedProblem, inputs: Sequence[Any], use: OperatorUse, draws: Draws, device: torch.device
) -> tuple[list[InputContract], frozenset[Draw]]:
    """Complete those that the problem states, and return the draws in `get_inputs` that may change. Gradients of
    outputs, the last of the inputs, are any real numbers.
    """
    watch, made = _watch_draws(loaded, inputs, draws, device)
    others = loaded.make_inputs(OTHER_SEED, device)
    last = len(inputs) - loaded.problem.backward
    inputs, others = inputs[:last], others[:last]
    ranges, tensors, contracts = watch.find_ranges(list_tensors(made)), count(), []
    leaves = zip(loaded.list_contracts(inputs), list_leaves(inputs), list_leaves(others), strict=True)
    for contract, one, other in leaves:
        place = next(tensors) if isinstance(one, Tensor) else None
        drawn_from = None if place is None else ranges.get(place)
        contracts.append(complete_contract(contract, one, other, use, drawn_from=drawn_from, place=place))
    watched = [one if isinstance(one, Tensor) else None for one in list_leaves(made)]
    return watch.mark_redrawn(contracts, watched, use) if watched else (contracts, frozenset())


def find_terms(traits: InputTraits, inputs: Sequence[Any]) -> Terms | None:
    """Return None if unknown. Values of few digits, as whole numbers, may all err in one direction when they are added,
    as truncated sums do.
    """
    if not traits.is_known:
        return None
    floats = [tensor for tensor in list_tensors(inputs) if tensor.dtype in PATTERNS and tensor.numel()]
    terms = traits.use.terms
    return terms if all(map(has_many_digits, floats)) else replace(terms, truncated=terms.added)


def watch_reference(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    changing: dict[str, Tensor],
    device: torch.device,
) -> OperatorUse | None:
    copies = copy_tensors(inputs, device)
    watch = OperatorCalls(copies)
    use = None
    with suppress(ProblemError):
        with watch:
            run_reference(loaded, model, copies)
        use = watch.use
    write_state(model, changing)
    return use


def _watch_draws(
    loaded: LoadedProblem, inputs: Sequence[Any], draws: Draws, device: torch.device
) -> tuple[DrawWatch, list[Any]]:
    """Watch `get_inputs`, and return what it made, nothing if it fails. Large tensors have no values."""
    is_large = count_bytes(list_tensors(inputs)) > MOST_WATCHED_BYTES
    watches = [DrawWatch()]

    def watch_again() -> Sequence[AbstractContextManager[object]]:
        watches.append(DrawWatch())
        return draws, watches[-1]

    with suppress(ProblemError):
        made = loaded.draw_arguments(0, META if is_large else device, watch_again)
        return watches[-1], list(made)
    return watches[0], []


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def plan_kinds(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> list[InputKind]:
    """List the kinds of all calls with fresh inputs but the first three.

    A small problem is called so often that a candidate which rotates as many output buffers as the worker keeps must
    overwrite one with other values.
    """
    used = (*list_declared(problem), *derived)
    kinds = [kind for kind in used for _ in range(kind.count_calls(is_small=is_small))]
    if is_small:
        kinds += [GIVEN] * max(KEPT_CALLS - RERUNS - len(kinds), 0)
    return kinds


def count_further_calls(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> int:
    return len(plan_kinds(problem, derived, is_small=is_small)) + problem.dynamic_shapes + 2 * problem.dynamic_weights
