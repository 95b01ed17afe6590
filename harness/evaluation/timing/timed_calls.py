from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle

from harness.domain import Block, Outcome
from harness.evaluation.correctness.reference import Reference
from harness.sandbox.failure import fatal_failure
from harness.sandbox.model_session import Run


def require_form(run: Run) -> Run:
    """Raises CandidateFailure (suspect) for outputs of another form."""
    if run.taken and not any(tensor.is_meta for tensor in run.outputs.tensors):
        return run
    message = "a timed call returned outputs of another form than untimed calls"
    raise fatal_failure(Outcome.SUSPECT, "timed_call", message)


def draw_seed(reference: Reference, seeds: Iterator[int], step: str) -> int:
    """Draw the seed of a timed call with inputs of kind `step`; "" allows any."""
    return next(seed for seed in seeds if step in ("", reference.choose_timed_step(seed)))


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
