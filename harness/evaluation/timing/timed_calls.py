"""Pairs of timed calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
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
    """Of a timed call with such inputs; "": any."""
    return next(seed for seed in seeds if step in ("", reference.choose_timed_step(seed)))


def deal_changed_steps(reference: Reference, source: random.Random) -> Iterator[str]:
    """In turn, without end; "" where timed calls have given inputs only."""
    steps = reference.changed_steps
    return cycle(source.sample(steps, len(steps)) or [""])


def make_block(baseline: Run, candidate: Run) -> Block:
    block = Block(
        calls=1,
        baseline_claim_us=baseline.called.claim_us,
        candidate_claim_us=candidate.called.claim_us,
        baseline_judge_us=baseline.judge_us,
        candidate_judge_us=candidate.judge_us,
        baseline_loading_us=baseline.called.loading_us,
        baseline_copy_us=baseline.copy_us,
        candidate_copy_us=candidate.copy_us,
    )
    if baseline.times is None or candidate.times is None:
        return block
    return replace(
        block,
        baseline_wake_us=baseline.times.wake_us,
        candidate_wake_us=candidate.times.wake_us,
        baseline_go_us=baseline.times.go_us,
        candidate_go_us=candidate.times.go_us,
        baseline_unread_us=baseline.times.unread_us,
        candidate_unread_us=candidate.times.unread_us,
        baseline_snapshot_us=baseline.times.snapshot_us,
        candidate_snapshot_us=candidate.times.snapshot_us,
        baseline_settling_us=baseline.times.settling_us,
        candidate_settling_us=candidate.times.settling_us,
    )
