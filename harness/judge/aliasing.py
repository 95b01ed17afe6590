"""Whether outputs share memory with inputs or with other outputs, found by what happens to them when others are
written. What the outputs hold is judged elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Finding, Outcome
from harness.judge.client import CandidateFailure
from harness.judge.difference import has_same_bits
from harness.judge.session import ModelSession, Run
from harness.wire import flatten_value


class AliasCheck:
    """After new inputs were written the last outputs must be as they were, and so they must after the next call.

    Where the reference itself returns a view of its inputs or of its own state, neither is asked for.
    """

    def __init__(self, session: ModelSession, model: nn.Module) -> None:
        self._session = session
        self._model = model
        self._last: tuple[Tensor, ...] | None = None
        self._may_be_views: bool | None = None

    def forget(self) -> None:
        """Call where the next call returns outputs of another form than the last."""
        self._last = None

    def check_inputs_apart(self) -> None:
        """Call after the next inputs were placed. Raises CandidateFailure (wrong_value)."""
        if self._last is None or self._may_be_views:
            return
        if not _all_equal(self._session.copy_again(earlier=False), self._last):
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            finding = Finding(check="alias_input", severity="fatal", message=message)
            raise CandidateFailure(Outcome.WRONG_VALUE, message, (finding,))

    def find_overwritten(self, run: Run, inputs: Sequence[Any]) -> str | None:
        """Call after each call with right outputs: what is wrong if those of the call before are no longer the same."""
        before, self._last = self._last, run.outputs.tensors
        if self._may_be_views is None:
            self._may_be_views = returns_views(self._model, inputs)
        if before is None or self._may_be_views:
            return None
        seen = run.sight is not None and bool(run.sight.overwritten)
        if not seen and _all_equal(self._session.copy_again(earlier=True), before):
            return None
        return "an output of an earlier call changed when the model was called again"


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
