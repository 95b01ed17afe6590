"""Whether outputs share memory with inputs or with other outputs, found by what happens to them when others are
written. What the outputs hold is judged elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Finding, Outcome
from harness.protocol import count_kept_calls, flatten_value
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.model_session import ModelSession, Run
from harness.sandbox.tensors.outputs import has_same_bits


class AliasCheck:
    """After new inputs were written the last outputs must be as they were, and so they must after the next calls.

    Where the reference itself returns a view of its inputs or of its own state, neither is asked for.
    """

    def __init__(self, session: ModelSession, model: nn.Module) -> None:
        self._session = session
        self._model = model
        self._last: deque[tuple[Tensor, ...]] = deque()  # the newest first
        self._may_be_views: bool | None = None

    def forget(self) -> None:
        """Call where the next call returns outputs of another form than the last."""
        self._last.clear()

    def check_inputs_apart(self) -> None:
        """Call after the next inputs were placed. Raises CandidateFailure (wrong_value)."""
        if not self._last or self._may_be_views:
            return
        if not _all_equal(self._session.copy_again(age=0), self._last[0]):
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            finding = Finding(check="alias_input", severity="fatal", message=message)
            raise CandidateFailure(Outcome.WRONG_VALUE, message, (finding,))

    def find_overwritten(self, run: Run, inputs: Sequence[Any]) -> str | None:
        """Call after each call with right outputs: what is wrong if those of calls before are no longer the same."""
        if self._may_be_views is None:
            self._may_be_views = returns_views(self._model, inputs)
            if not self._may_be_views:
                self._session.pin(run.outputs)
        message = None if self._may_be_views else self._compare(run)
        self._last.appendleft(run.outputs.tensors)
        while len(self._last) > _count_compared(run):
            self._last.pop()
        return message

    def _compare(self, run: Run) -> str | None:
        seen = "" if run.sight is None else run.sight.overwritten
        pairs = ((self._session.copy_again(age=age), outputs) for age, outputs in enumerate(self._last, start=1))
        if not seen and all(_all_equal(now, before) for now, before in pairs):
            return None
        return "an output of an earlier call changed when the model was called again" + (f" ({seen})" if seen else "")


def _count_compared(run: Run) -> int:
    """How many calls before the next one are compared as a whole: all that the worker keeps, but where the judge has
    looked into its memory it has looked at earlier ones there; see `ModelSession`."""
    size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in run.outputs.tensors)
    return 1 if run.sight is not None else count_kept_calls(size_bytes) - 1


def returns_views(model: nn.Module, inputs: Sequence[Any]) -> bool:
    """Whether the module's outputs share storage with its inputs or its state. It is called once."""
    with torch.no_grad():
        outputs = model(*inputs)
    own = list(model.state_dict().values())
    return bool(_storages(outputs) & _storages([list(inputs), [value for value in own if torch.is_tensor(value)]]))


def _storages(value: Any) -> set[int]:
    tensors = flatten_value(value, torch.is_tensor)[1]
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def _all_equal(now: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    return all(has_same_bits(a, b) for a, b in zip(now, before, strict=True))
