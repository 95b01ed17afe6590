"""Timed calls whose outputs are judged once time is taken: some at random, and those that a quick look finds odd."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from harness.evaluation.correctness.checks import is_surely_right, judge_run
from harness.evaluation.correctness.comparison import are_surely_close, judge_outputs
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.truth import trust_outputs
from harness.sandbox.model_session import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How many calls are judged against the truth, which share of all is held against the baseline's outputs, and how
    many of those that differ are kept."""

    judged_calls: int = 3
    screened_share: float = 0.5
    max_screened_kept: int = 3


class ChosenCalls:
    """Of one measurement of one candidate."""

    def __init__(self, reference: Reference, choice: Choice, source: random.Random) -> None:
        self._reference = reference
        self._choice = choice
        self._source = source
        self._tolerance = reference.loaded.problem.tolerance
        self._kept: list[tuple[tuple[Any, ...], Run]] = []
        self._screened: list[tuple[tuple[Any, ...], Run]] = []
        self._seen = 0

    def note(self, inputs: tuple[Any, ...], baseline: Run, candidate: Run) -> None:
        """A pair of calls whose outputs were taken."""
        self._keep_some(inputs, candidate)
        if self._source.random() < self._choice.screened_share:
            self._screen(inputs, baseline, candidate)

    def find_wrong(self) -> str | None:
        """What is wrong with one of the calls that were chosen; None: nothing."""
        for inputs, run in (*self._screened, *self._kept):
            if is_surely_right(run, self._reference.outputs_of(inputs), self._reference):
                continue
            outcome, trial = judge_run(run, self._reference.truth_of(inputs), self._reference, "timed")
            if outcome is not None:
                return f"a timed call was wrong although the untimed ones were right: {trial.message}"
        return None

    def _keep_some(self, inputs: tuple[Any, ...], run: Run) -> None:
        """Reservoir sampling: each of the calls whose outputs were taken is as likely to be judged as any other."""
        self._seen += 1
        if len(self._kept) < self._choice.judged_calls:
            self._kept.append((inputs, run))
            return
        slot = self._source.randrange(self._seen)
        if slot < self._choice.judged_calls:
            self._kept[slot] = (inputs, run)

    def _screen(self, inputs: tuple[Any, ...], baseline: Run, candidate: Run) -> None:
        """Keeps a call for judging whose outputs are not close to the baseline's on the same inputs: far cheaper than
        computing the truth, and so done for many calls."""
        if len(self._screened) >= self._choice.max_screened_kept:
            return
        if are_surely_close(baseline.outputs, candidate.outputs, self._tolerance):
            return
        outcome, _ = judge_outputs(trust_outputs(baseline.outputs), candidate.outputs, self._tolerance, "timed")
        if outcome is not None:
            self._screened.append((inputs, candidate))
