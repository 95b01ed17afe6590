"""Whether outputs share memory with inputs or with other outputs, found by what happens to them when others are
written. What the outputs hold is judged elsewhere."""

from __future__ import annotations

from collections import deque

from torch import Tensor

from harness.domain import Finding, Outcome
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.model_session import ModelSession, Run


class AliasCheck:
    """After new inputs were written the last outputs must be as they were, and so they must after the next calls.

    With `may_be_views`, where the reference itself returns a view of its inputs or of its own state, neither is asked
    for. The worker keeps the outputs of `kept_calls` calls.
    """

    def __init__(self, session: ModelSession, *, may_be_views: bool, kept_calls: int) -> None:
        self._session = session
        self._may_be_views = may_be_views
        self._kept_calls = kept_calls
        self._last: deque[tuple[Tensor, ...]] = deque()  # the newest first
        self._has_pinned = False

    def forget(self) -> None:
        """Call where the next call returns outputs of another form than the last."""
        self._last.clear()

    def check_inputs_apart(self) -> None:
        """Call after the next inputs were placed. Raises CandidateFailure (wrong_value)."""
        if not self._last or self._may_be_views:
            return
        if not self._session.still_has(self._last[0]):
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            finding = Finding(check="alias_input", severity="fatal", message=message)
            raise CandidateFailure(Outcome.WRONG_VALUE, message, (finding,))

    def find_overwritten(self, run: Run) -> str | None:
        """Call after each call with right outputs: what is wrong if those of calls before are no longer the same."""
        if not self._has_pinned and not self._may_be_views:
            self._session.pin(run.outputs)
            self._has_pinned = True
        message = None if self._may_be_views else self._compare(run)
        self._last.appendleft(run.outputs.tensors)
        while len(self._last) > self._count_compared(run):
            self._last.pop()
        return message

    def _compare(self, run: Run) -> str | None:
        seen = "" if run.memory_sample is None else run.memory_sample.overwritten
        kept = list(self._last)[: self._kept_calls - 1]
        if not seen and all(self._session.still_has(outputs, age=age) for age, outputs in enumerate(kept, start=1)):
            return None
        return "an output of an earlier call changed when the model was called again" + (f" ({seen})" if seen else "")

    def _count_compared(self, run: Run) -> int:
        """How many calls before the next one are compared as a whole: all that the worker keeps, but where the judge
        has looked into its memory it has looked at earlier ones there; see `ModelSession`."""
        return 1 if run.memory_sample is not None else max(self._kept_calls - 1, 1)
