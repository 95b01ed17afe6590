"""The states that timed calls begin with, which are new to the candidate."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from harness.domain import ProblemError
from harness.evaluation.correctness.other_states import (
    draw_other_weights,
    has_finite_values,
    scale_state,
    vary_weights,
)
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.problems.inputs.kind import GIVEN

if TYPE_CHECKING:
    from harness.evaluation.correctness.reference import Reference

INITIAL_SHARE, FAR_SHARE = 1 / 6, 1 / 3
UNUSUAL_SHARE = 0.25  # of states that a call with another kind of inputs leaves
OTHER_SHARE = 0.8  # of timed calls that begin with weights of another seed: those with known ones do not count
VARIED_SHARE = 0.25  # of those with dynamic weights, some of which are much larger, or have the other sign
SCALED_SHARE, LARGE = 0.5, 1024  # of other timed states, in elements
MIXABLE = (torch.float64, torch.float32, torch.bfloat16, torch.float16)  # states
VARIED = "varied"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """How the state of a timed call comes about. `step` is the kind of inputs of the call before, `calls` a number of
    calls that are skipped.
    """

    origin: Literal["initial", "later", "far"]
    step: str = GIVEN.name
    calls: int = 0
    varies_weights: bool = False

    @property
    def compared_as(self) -> str:
        """Return the kind of inputs whose errors are as large."""
        return VARIED if self.varies_weights and self.step == GIVEN.name else self.step


def has_given_state(reference: Reference) -> bool:
    return bool(reference.changing) and reference.plan.stress and reference.computes_on is None


def plan_state(reference: Reference, seed: int) -> GivenState:
    """Both calls have the same kind of inputs, or one of them has the given kind."""
    source = random.Random(f"origin {seed}")
    place, is_unusual = source.random(), source.random() < UNUSUAL_SHARE
    varies = reference.loaded.problem.dynamic_weights and source.random() < VARIED_SHARE
    if reference.dynamic and not reference.later:  # calls change no state
        return GivenState(origin="later", varies_weights=varies)
    if place < INITIAL_SHARE:
        return GivenState(origin="initial", varies_weights=varies)
    step, steps = reference.choose_timed_step(seed), (*reference.timed_steps, *reference.untimed_steps)
    if step == GIVEN.name and is_unusual and steps:
        step = source.choice(steps)
    elif step != GIVEN.name and source.random() < 1 / 2:
        step = GIVEN.name
    if reference.far is None or place > INITIAL_SHARE + FAR_SHARE:
        return GivenState(origin="later", step=step, varies_weights=varies)
    return GivenState(origin="far", step=step, calls=reference.far.draw(source), varies_weights=varies)


def name_state(reference: Reference, seed: int) -> str:
    """Return the group of states, for given inputs, whose time is compared with that of others; "" for usual ones."""
    if reference.far is None or not has_given_state(reference):
        return ""
    planned, step = plan_state(reference, seed), reference.choose_timed_step(seed)
    begin = reference.far.find_group(planned.calls) if planned.origin == "far" and step == GIVEN.name else 0
    return f"{step} (in states after {begin} calls)" if begin else ""


def is_usual_state(reference: Reference, seed: int) -> bool:
    """Return whether few calls lead to the state, and at least one, so that all parts of a call have an effect."""
    return not has_given_state(reference) or plan_state(reference, seed).origin == "later"


def make_given_state(reference: Reference, seed: int) -> dict[str, Tensor]:
    planned, source = plan_state(reference, seed), random.Random(f"state {seed}")
    given = source.choice((reference.changing, *reference.later[:-1]))
    if planned.origin == "initial":
        given = reference.changing
    elif planned.origin == "far" and reference.far is not None:
        given = reference.far.at(planned.calls)
    if reference.dynamic and source.random() < OTHER_SHARE:
        given = given | draw_other_weights(reference, source.getrandbits(62))
    state = given if planned.origin == "initial" else _call(reference, given, planned.step, source)
    if reference.loaded.problem.dynamic_weights:
        state = scale_state(reference.model, state, source)
        return _vary_weights(reference, state, source) if planned.varies_weights else state
    if planned.origin != "initial" and source.random() < SCALED_SHARE:  # a call may leave most of a state as it was
        large = {name: one for name, one in state.items() if one.numel() >= LARGE}
        state = state | scale_state(reference.model, large, source, partly=True)
    return state


def _call(reference: Reference, given: dict[str, Tensor], step: str, source: random.Random) -> dict[str, Tensor]:
    """Return the state that a call leaves, or one between that and `given`."""
    seed = source.getrandbits(62)
    after = _find_usable(reference, given, seed, step) if step != GIVEN.name else None
    after = after or _find_after(reference, given, seed, GIVEN.name)
    share = source.choice((1.0, source.random()))  # floating numbers that count calls are whole only at an end
    return {
        name: before.lerp(after[name], share) if before.dtype in MIXABLE else after[name]
        for name, before in given.items()
    }


def _find_after(reference: Reference, given: dict[str, Tensor], seed: int, step: str) -> dict[str, Tensor]:
    """Raises ProblemError."""
    outputs = reference.outputs_of(reference.make_device_inputs(seed, step), given)
    return dict(zip(given, outputs.tensors[len(outputs.tensors) - len(given) :], strict=True))


def _find_usable(reference: Reference, given: dict[str, Tensor], seed: int, step: str) -> dict[str, Tensor] | None:
    """Return the state after a call with another kind of inputs; None if that or the next call fails."""
    with suppress(ProblemError):
        after = _find_after(reference, given, seed, step)
        is_finite = all(map(has_finite_values, after.values()))
        return after if is_finite and _is_usable(reference, after, seed) else None
    return None


def _is_usable(reference: Reference, state: dict[str, Tensor], seed: int) -> bool:
    """Raises ProblemError."""
    outputs = reference.outputs_of(reference.make_device_inputs(seed + 1), state)
    return has_only_numbers(outputs) and not reference.grow(outputs)


def _vary_weights(reference: Reference, state: dict[str, Tensor], source: random.Random) -> dict[str, Tensor]:
    varied = vary_weights(reference.model, state, source)
    with suppress(ProblemError):
        return varied if _is_usable(reference, varied, source.getrandbits(61)) else state
    return state
