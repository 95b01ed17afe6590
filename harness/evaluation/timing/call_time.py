"""Times whole calls on a GPU beside device time: from the start signal until the evaluator has copied the outputs. The
time decides nothing. See docs/measurement.md.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from harness.evaluation.correctness.reference import Reference
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing.apart import count_warmup_calls
from harness.evaluation.timing.chosen_calls import TimedSeeds, find_wrong_call, require_form
from harness.problems.inputs.kind import GIVEN
from harness.sandbox.model_session import ModelSession, Run

CALLS, LEAST_CALLS, BUDGET_S = 15, 3, 0.15  # one is enough of a program that needs the budget for it
MOST_CALLS = 40  # with those whose outputs lie in new memory, which has to be mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """`wrong` says what was wrong in a call."""

    median_us: float
    wrong: str | None = None


def warm_up(session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
    """For a new worker."""
    for _ in count_warmup_calls(session, TimingPlan().warmup_calls):
        _call(session, reference, next(seeds))


def time_calls(session: ModelSession, reference: Reference, seeds: Iterator[int], *, checks: bool = False) -> CallTime:
    """The worker must be warm. `checks` compares one call with the truth, if one of the inputs' seeds is shared."""
    source = random.Random(next(seeds))
    timed_seeds = TimedSeeds(reference, seeds, source)
    times_us: list[float] = []
    mapped_us: list[float] = []
    checked: tuple[int, Run] | None = None
    until_s = time.monotonic() + BUDGET_S
    calls = 0
    while len(times_us) < CALLS and calls < MOST_CALLS:
        seed = timed_seeds.draw(GIVEN.name)
        run = _call(session, reference, seed)
        calls += 1
        assert run.call_us is not None
        (mapped_us if session.saw_new_memory else times_us).append(run.call_us)
        if checks and checked is None and timed_seeds.is_shared(seed):
            checked = seed, run
        is_enough = calls >= LEAST_CALLS or run.call_us > 1e6 * BUDGET_S
        if is_enough and time.monotonic() > until_s:
            break
    wrong = None if checked is None else find_wrong_call(reference, *checked, source)
    return CallTime(median_us=statistics.median(times_us or mapped_us), wrong=wrong)


def _call(session: ModelSession, reference: Reference, seed: int) -> Run:
    session.reset_state(reference.make_timed_state(seed))
    return require_form(session.call(reference.make_timed_inputs(seed), reference.device, look=False))
