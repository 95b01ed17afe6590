"""Which calls a candidate's correctness is judged by."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.domain import MIXED, Problem
from harness.protocol import KEPT_CALLS
from harness.sandbox.memory_plan import TRIALS as AS_GIVEN_TRIALS
from harness.sandbox.memory_plan import MemoryPlan

MIXED_TRIALS = 8  # where calls cost little; else 2
RERUNS = 3  # where calls cost little; else 1


def plan_steps(problem: Problem, *, is_small: bool, changes_state: bool, source: random.Random) -> tuple[str, ...]:
    """What to try, in order: the problem's own inputs several times, then, in a secret order, each other distribution
    that it declares and earlier inputs again; then what else it declares, and earlier inputs once more.

    A small problem is called so often that of outputs which a candidate writes into a few places in turn, as many as
    the worker keeps, one is overwritten for sure with another: the inputs of the last of the first calls never come
    again."""
    others = [name for name in problem.distributions if name != "as_given"]
    if problem.stress_distributions:
        others += [MIXED] * (MIXED_TRIALS if is_small else 2)
    if is_small:
        others += ["rerun"] * (RERUNS - 1)
        others += ["as_given"] * max(KEPT_CALLS - 1 - len(others), 0)
    source.shuffle(others)
    declared = {
        "calls_in_a_row": changes_state,
        "nearby_shape": problem.dynamic_shapes,
        "other_weights": problem.dynamic_weights,
    }
    return (*["as_given"] * AS_GIVEN_TRIALS, *others, *(name for name, wanted in declared.items() if wanted), "rerun")


def reduce_steps(steps: Sequence[str], plan: MemoryPlan) -> tuple[str, ...]:
    """Those of the steps for which there is memory. Two calls in a row, and the last repetition, are always among
    them."""
    if plan.stress:
        first = AS_GIVEN_TRIALS - plan.trials
        return tuple(steps[first:])
    row = tuple(step for step in steps if step == "calls_in_a_row")
    return (*["as_given"] * plan.trials, *row, "rerun")


def count_further_steps(problem: Problem, *, is_small: bool) -> int:
    """Steps beside the first ones, and beside calls in a row, that need inputs and expected outputs of their own."""
    steps = plan_steps(problem, is_small=is_small, changes_state=False, source=random.Random(0))
    return sum(step != "rerun" for step in steps) - AS_GIVEN_TRIALS
