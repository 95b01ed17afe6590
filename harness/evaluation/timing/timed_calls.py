from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, cycle

from harness.domain import Block, Outcome
from harness.evaluation.correctness.reference import SMALL_CALL_S, Reference
from harness.problems.inputs.kind import GIVEN
from harness.sandbox.failure import fatal_failure
from harness.sandbox.model_session import Run

SHARED_SEEDS, SHARED_SHARE = (4, 8), 0.15  # of changed and given inputs; of the calls with given ones
FEWER = 2  # times, where computing the truth takes long


def require_form(run: Run) -> Run:
    """Raises CandidateFailure (suspect) for outputs of another form."""
    if run.taken and not any(tensor.is_meta for tensor in run.outputs.tensors):
        return run
    message = "a timed call returned outputs of another form than untimed calls"
    raise fatal_failure(Outcome.SUSPECT, "timed_call", message)


def draw_seed(reference: Reference, seeds: Iterator[int], step: str) -> int:
    """Draw the seed of a timed call with inputs of kind `step`; "" allows any."""
    return next(seed for seed in seeds if step in ("", reference.choose_timed_step(seed)))


class TimedSeeds:
    """Draws seeds of timed calls. A few of each kind of inputs are the same for all candidates of a reference, so that
    their truths are computed once. They are spread at random over the calls.
    """

    def __init__(self, reference: Reference, fresh: Iterator[int], source: random.Random) -> None:
        self._reference, self._fresh, self._source = reference, fresh, source
        self._left = {step: self._list_shared(step) for step in (GIVEN.name, *reference.changed_steps)}
        self._shared = frozenset(seed for seeds in self._left.values() for seed in seeds)

    def draw(self, step: str) -> int:
        is_shared = step != GIVEN.name or self._source.random() < SHARED_SHARE
        return self.draw_shared(step) if is_shared else self.draw_fresh(step)

    def draw_shared(self, step: str) -> int:
        """Return a fresh one if all were drawn."""
        left = self._left[step]
        return left.pop() if left else self.draw_fresh(step)

    def draw_fresh(self, step: str) -> int:
        return draw_seed(self._reference, self._fresh, step)

    def is_shared(self, seed: int) -> bool:
        return seed in self._shared

    def _list_shared(self, step: str) -> list[int]:
        numbers, most = random.Random(f"timed {step} {self._reference.seed}"), SHARED_SEEDS[step == GIVEN.name]
        if self._reference.call_s > SMALL_CALL_S:
            most //= FEWER
        seeds = (numbers.getrandbits(62) for _ in count())
        return self._source.sample([draw_seed(self._reference, seeds, step) for _ in range(most)], most)


def deal_changed_steps(reference: Reference, source: random.Random) -> Iterator[str]:
    """Yield changed kinds of inputs in endless rotation; "" if timed calls have given inputs only."""
    steps = reference.changed_steps
    return cycle(source.sample(steps, len(steps)) or [""])


def make_block(baseline: Run, candidate: Run) -> Block:
    """Use only the evaluator's clock on a GPU."""
    return Block(
        calls=1,
        baseline_reported_us=baseline.called.reported_us if baseline.call_us is None else baseline.call_us,
        candidate_reported_us=candidate.called.reported_us if candidate.call_us is None else candidate.call_us,
        baseline_evaluator_us=baseline.evaluator_us,
        candidate_evaluator_us=candidate.evaluator_us,
        baseline_loading_us=baseline.called.loading_us,
        baseline_copy_us=baseline.copy_us,
        candidate_copy_us=candidate.copy_us,
    )
