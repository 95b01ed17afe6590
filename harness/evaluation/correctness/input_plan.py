"""Learns the traits of a problem's inputs from one watched run, and plans which kinds check correctness."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Problem, ProblemError
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.inputs.altered import find_constants, may_alter
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.kinds import list_declared
from harness.problems.inputs.rare import WatchedDraws
from harness.problems.inputs.structure import DrawWatch
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorCalls, OperatorUse
from harness.protocol import KEPT_CALLS
from harness.tensors.trees import list_tensors

REDRAWN = 2  # more calls with kinds of inputs that differ in each call, where calls cost little
RERUNS = 3  # repetitions of earlier calls, where calls cost little; else 1
OTHER_SEED = 1  # of inputs that are compared with the given ones


def learn_traits(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    *,
    changing: dict[str, Tensor],
    device: torch.device,
) -> InputTraits:
    """Return traits without `use` if the problem allows only given inputs, or if the watched reference fails."""
    unknown = InputTraits(problem=loaded.problem)
    use = None if loaded.problem.only_as_given else _watch_reference(loaded, model, inputs, changing, device)
    if use is None:
        return unknown
    other = loaded.make_inputs(OTHER_SEED, device) if may_alter(use) else None
    draws = WatchedDraws()
    structured = _find_structured(loaded, inputs, draws)
    return InputTraits(
        problem=loaded.problem,
        use=use,
        structured=frozenset() if use.orders_values else structured,  # then values are only moved together
        constants=() if other is None else find_constants(inputs, other, use),
        draws_integers=draws.integers,
        fewest_drawn=draws.fewest,
        returns_floats=any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs),
        has_state=bool(changing) or any(map(_is_floating, model.state_dict().values())),
    )


def _watch_reference(
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


def _find_structured(loaded: LoadedProblem, inputs: Sequence[Any], draws: WatchedDraws) -> frozenset[int]:
    """Watch `get_inputs` on the meta device; if it needs real values, all tensors count as structured."""
    watch = DrawWatch()
    with suppress(ProblemError), watch:
        made = loaded.make_inputs(0, torch.device("meta"), watch=draws)
        return frozenset(watch.find_structured(list_tensors(made)))
    return frozenset(range(len(list_tensors(inputs))))


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def plan_kinds(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> list[InputKind]:
    """List the kinds of all calls with fresh inputs but the first three.

    A small problem is called so often that a candidate which rotates as many output buffers as the worker keeps must
    overwrite one with other values.
    """
    kinds = [kind for kind in list_declared(problem) for _ in range(kind.count_calls(is_small=is_small))]
    kinds += [*derived, *(kind for kind in derived if kind.is_rarely_seen)]
    if is_small:
        kinds += REDRAWN * [kind for kind in derived if kind.is_redrawn]
        kinds += [GIVEN] * max(KEPT_CALLS - RERUNS - len(kinds), 0)
    return kinds


def count_further_calls(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> int:
    """Count calls with inputs of their own, without the first three and calls in a row."""
    return len(plan_kinds(problem, derived, is_small=is_small)) + problem.dynamic_shapes + problem.dynamic_weights
