"""Detects outputs that share memory with inputs or other outputs, by writing to these."""

from __future__ import annotations

from collections import deque

from harness.domain import Finding, Outcome, Problem
from harness.sandbox.failure import fatal_failure
from harness.sandbox.model_session import ModelSession, Run
from harness.tensors.outputs import Change, KeptOutputs

REUSES_OUTPUT = Finding(
    check="reuses_output",
    severity="note",
    message="a later call uses the memory of an earlier output again: use each output before the next call",
)
_CHANGED = "an output of an earlier call changed"
_CAUSES = {
    Change.REUSED: "a later call uses its memory; the problem declares FRESH_OUTPUTS = True: return new memory "
    "from each call",
    Change.OVERWRITTEN: "no later output lies in its memory; do not write to an output once it is returned",
}


def find_worst_allowed(problem: Problem) -> Change:
    return Change.NONE if problem.fresh_outputs else Change.REUSED


def describe_change(change: Change, when: str) -> str:
    return f"{_CHANGED} {when}, and {_CAUSES[change]}"


class AliasCheck:
    """`views` are positions of outputs that are views of inputs or state in the reference; they may share memory. The
    worker keeps the outputs of `kept_calls` calls.
    """

    def __init__(self, session: ModelSession, *, views: frozenset[int], kept_calls: int) -> None:
        self._session = session
        self._views = views
        self._kept_calls = kept_calls
        self._last: deque[KeptOutputs] = deque()  # the newest first
        self._has_pinned = False

    def forget(self) -> None:
        """Call after the form of the outputs changes."""
        self._last.clear()

    def check_inputs_apart(self) -> None:
        """Call after placing the next inputs. Raises CandidateFailure (wrong_value)."""
        if not self._last:
            return
        if self._session.find_change(self._last[0]) is not Change.NONE:
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            raise fatal_failure(Outcome.WRONG_VALUE, "alias_input", message)

    def find_change(self, run: Run) -> tuple[Change, str]:
        """Call after each correct call. Return the worst change of earlier outputs, and its time."""
        if not self._has_pinned:
            self._session.pin(run.outputs, self._views)
            self._has_pinned = True
        change, seen = self._compare(run)
        self._last.appendleft(self._session.keep_outputs(run.outputs, self._views))
        while len(self._last) > self._count_compared(run):
            self._last.pop()
        return change, f"when the model was called again{seen and f' ({seen})'}"

    def _compare(self, run: Run) -> tuple[Change, str]:
        sample = None if self._views else run.memory_sample
        sampled, seen = (Change.NONE, "") if sample is None else (sample.change, sample.changed)
        kept = list(self._last)[: self._kept_calls - 1]
        changes = (self._session.find_change(outputs, age=age) for age, outputs in enumerate(kept, start=1))
        return max([sampled, *changes]), seen

    def _count_compared(self, run: Run) -> int:
        return 1 if run.memory_sample is not None else max(self._kept_calls - 1, 1)
