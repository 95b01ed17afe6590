"""Plans the calls that check correctness."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.domain import ALTERED, BIASED, LOWERED, MIXED, RARE, SHIFTED, SIGNED, SPARSE, STRETCHED, VARIED, Problem
from harness.protocol import KEPT_CALLS
from harness.sandbox.memory_plan import TRIALS as AS_GIVEN_TRIALS
from harness.sandbox.memory_plan import MemoryPlan

# Other places or values in each call.
REPEATED = (ALTERED, BIASED, LOWERED, RARE, SHIFTED, SIGNED, SPARSE, STRETCHED, VARIED)
MIXED_TRIALS = 8  # where calls cost little; else 2
ROW_STEPS = 4  # calls in a row
RERUNS = 3  # where calls cost little; else 1


def plan_steps(
    problem: Problem,
    *,
    is_small: bool,
    changes_state: bool,
    source: random.Random,
    own: Sequence[str] = (),
    hides_weights: bool = False,
) -> tuple[str, ...]:
    """First the problem's own inputs, then declared distributions, the steps `own` and repetitions in secret order,
    then other declared variations and a last repetition. `hides_weights`: their effect is too small to be seen.

    A small problem is called so often that a candidate which rotates as many output buffers as the worker keeps must
    overwrite one with other values.
    """
    others = [name for name in problem.distributions if name != "as_given"]
    if problem.stress_distributions:
        others += [MIXED] * (MIXED_TRIALS if is_small else 2)
    others += own
    others += [name for name in own if name in (ALTERED, SIGNED, VARIED)]
    if is_small:
        others += 2 * [name for name in own if name in REPEATED]
        others += ["rerun"] * (RERUNS - 1)
        others += ["as_given"] * max(KEPT_CALLS - 1 - len(others), 0)
    source.shuffle(others)
    declared = {
        "calls_in_a_row": changes_state,
        "nearby_shape": problem.dynamic_shapes,
        "other_weights": problem.dynamic_weights or hides_weights,
    }
    return (*["as_given"] * AS_GIVEN_TRIALS, *others, *(name for name, wanted in declared.items() if wanted), "rerun")


def plan_few_steps(
    problem: Problem, *, changes_state: bool, source: random.Random, own: Sequence[str] = ()
) -> tuple[str, ...]:
    """For the cases beside the one that is checked in full: a third of the declared distributions, in secret choice,
    and the steps `own`. At least two calls."""
    declared = [name for name in problem.distributions if name != "as_given"]
    others = source.sample(declared, -(-len(declared) // 3)) + [MIXED] * bool(problem.stress_distributions)
    others += own
    source.shuffle(others)
    return (*["as_given"] * (1 if others else 2), *others, *["calls_in_a_row"] * changes_state)


def reduce_steps(steps: Sequence[str], plan: MemoryPlan) -> tuple[str, ...]:
    """The steps that fit into memory."""
    if plan.stress:
        first = AS_GIVEN_TRIALS - plan.trials
        return tuple(steps[first:])
    row = tuple(step for step in steps if step == "calls_in_a_row")
    return (*["as_given"] * plan.trials, *row, "rerun")


def count_further_steps(problem: Problem, *, is_small: bool, own: Sequence[str] = ()) -> int:
    """Steps with inputs of their own, without the first ones and calls in a row."""
    steps = plan_steps(problem, is_small=is_small, changes_state=False, source=random.Random(0), own=own)
    return sum(step != "rerun" for step in steps) - AS_GIVEN_TRIALS
