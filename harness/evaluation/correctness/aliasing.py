"""Detects outputs that share memory with inputs or other outputs, by writing these."""

from __future__ import annotations

from collections import deque

from harness.domain import Outcome
from harness.sandbox.failure import fatal_failure
from harness.sandbox.model_session import ModelSession, Run
from harness.sandbox.tensors.output_records import TensorRecord


class AliasCheck:
    """`views`: positions of outputs that are views of inputs or state in the reference, of which nothing is required.
    The worker keeps the outputs of `kept_calls` calls."""

    def __init__(self, session: ModelSession, *, views: frozenset[int], kept_calls: int) -> None:
        self._session = session
        self._views = views
        self._kept_calls = kept_calls
        self._last: deque[TensorRecord] = deque()  # the newest first
        self._has_pinned = False

    def forget(self) -> None:
        """Call where the form of the outputs changes."""
        self._last.clear()

    def check_inputs_apart(self) -> None:
        """Call after the next inputs were placed. Raises CandidateFailure (wrong_value)."""
        if not self._last:
            return
        if not self._session.still_has(self._last[0]):
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            raise fatal_failure(Outcome.WRONG_VALUE, "alias_input", message)

    def find_overwritten(self, run: Run) -> str | None:
        """Call after each correct call. Returns an error message."""
        if not self._has_pinned:
            self._session.pin(run.outputs, self._views)
            self._has_pinned = True
        message = self._compare(run)
        self._last.appendleft(TensorRecord.of(run.outputs.tensors, self._views))
        while len(self._last) > self._count_compared(run):
            self._last.pop()
        return message

    def _compare(self, run: Run) -> str | None:
        seen = "" if run.memory_sample is None or self._views else run.memory_sample.overwritten
        kept = list(self._last)[: self._kept_calls - 1]
        if not seen and all(self._session.still_has(outputs, age=age) for age, outputs in enumerate(kept, start=1)):
            return None
        what = "an output of an earlier call changed when the model was called again"
        return f"{what}{seen and f' ({seen})'}; return new memory from each call"

    def _count_compared(self, run: Run) -> int:
        """All that the worker keeps, or one where its memory is sampled (see `ModelSession`)."""
        return 1 if run.memory_sample is not None else max(self._kept_calls - 1, 1)
