"""Baselines that cannot be timed: unavailable ones, those that fail, and those with wrong outputs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from harness.domain import LIBRARY_CLASS, CandidateFailure, Finding, Outcome, TimedBaseline
from harness.evaluation.correctness.checks import compare_expected
from harness.evaluation.correctness.reference import Reference
from harness.sandbox.model_session import ModelSession

# Max-autotune's own graphs would gain nothing: recorded work is replayed as a graph.
COMPILE_MODES = {"compile": "default", "compile-max-autotune": "max-autotune-no-cudagraphs"}
MOST_CHARACTERS = 300


class BaselineFailure(Exception):
    """The message is the reason."""

    def describe(self, baseline: TimedBaseline) -> Finding:
        severity: Literal["note", "warning"] = "note" if isinstance(self, BaselineUnavailable) else "warning"
        return Finding(check="baseline", severity=severity, message=f"not timed against {baseline.name}: {self}")


class BaselineUnavailable(BaselineFailure):
    """The problem or the device has no such baseline."""


def require_available(baseline: TimedBaseline, reference: Reference) -> None:
    """Raises BaselineUnavailable."""
    if baseline.name == "eager-tf32" and not reference.device.has_tf32:
        raise BaselineUnavailable(f"{reference.device.name} has no TF32 units")
    if baseline.name == "library" and not reference.loaded.has_library:
        raise BaselineUnavailable(f"the problem's file has no class {LIBRARY_CLASS}(Model)")


@contextmanager
def blaming_baseline() -> Iterator[None]:
    """Raises BaselineFailure instead of a failure of the worker, unless memory is short, which may be repeated."""
    try:
        yield
    except CandidateFailure as failure:
        if failure.outcome is Outcome.OUT_OF_MEMORY:
            raise
        raise BaselineFailure(f"{failure.outcome}: {failure.message}"[:MOST_CHARACTERS]) from failure


@contextmanager
def sparing_memory() -> Iterator[None]:
    """Raises BaselineFailure where memory is short: a further baseline is not worth another evaluation."""
    try:
        yield
    except CandidateFailure as failure:
        if failure.outcome is not Outcome.OUT_OF_MEMORY:
            raise
        raise BaselineFailure(f"memory was short: {failure.message}"[:MOST_CHARACTERS]) from failure


def require_right(session: ModelSession, reference: Reference) -> None:
    """Compare a call with the truth. Raises BaselineFailure."""
    seed = random.Random(f"baseline {reference.seed}").getrandbits(62)
    inputs = reference.make_inputs(seed)
    session.reset_state()
    run = session.call(inputs, reference.device, look=False)
    outcome, trial = compare_expected(run, reference.expect(inputs, own_first=True), reference, "baseline")
    if outcome is not None:
        raise BaselineFailure(f"its outputs are wrong: {trial.message}"[:MOST_CHARACTERS])
