"""Whether the given inputs hide work of the reference, which a program could leave out, and inputs that show it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import SHIFTED, SIGNED, VARIED, ProblemError
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorWatch
from harness.problems.own_values import PART, is_uniform
from harness.protocol import flatten_value

# Defined in pieces: all given values may lie in one of them.
PIECEWISE = {
    "relu", "leaky_relu", "_prelu_kernel", "elu", "threshold", "hardtanh", "hardsigmoid", "hardswish", "softshrink",
    "hardshrink", "clamp", "clamp_min", "clamp_max", "abs", "sign", "maximum", "minimum", "fmax", "fmin", "gt", "ge",
    "lt", "le", "smooth_l1_loss", "huber_loss", "linalg_vector_norm",
}  # fmt: skip
# Statistics of many given values are nearly constants.
STATISTICS = {
    "native_layer_norm", "native_group_norm", "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_batch_norm_with_update", "_fused_rms_norm", "var", "var_mean", "std",
    "std_mean",
}  # fmt: skip
# Operators on probabilities or rates, which assert on a GPU.
VALUE_RESTRICTED = {
    "multinomial", "bernoulli", "bernoulli.p", "bernoulli_.Tensor", "poisson", "binomial", "binary_cross_entropy",
}  # fmt: skip
SHIFTABLE = {"_softmax", "_log_softmax", "_safe_softmax", "logsumexp"}  # subtract the largest value first


def list_revealing_steps(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], *, changing: dict[str, Tensor], device: torch.device
) -> tuple[str, ...]:
    """Runs the reference once. `signed` where an operator in pieces is applied to an input; `varied` where one changes
    nothing, statistics are computed, or an input is all zeros or ones; `shifted` for a softmax of an input. None if the
    problem declares other values."""
    if loaded.problem.stress_distributions:
        return ()
    copies = copy_tensors(inputs, device)
    watch = _WatchHiddenWork(copies)
    with suppress(ProblemError), watch:
        run_reference(loaded, model, copies)
    write_state(model, changing)
    if watch.restricts_values:
        return ()
    shifted = (SHIFTED,) if watch.is_shiftable else ()
    if watch.has_pieces:
        return (SIGNED, *shifted)
    uniform = any(map(is_uniform, flatten_value(tuple(inputs), torch.is_tensor)[1]))
    return (VARIED, *shifted) if watch.hides_work or uniform else shifted


class _WatchHiddenWork(OperatorWatch):  # type: ignore[no-untyped-call]
    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self._inputs = {_address(tensor) for tensor in flatten_value(tuple(inputs), torch.is_tensor)[1]}
        self.has_pieces = False
        self.hides_work = False
        self.is_shiftable = False
        self.restricts_values = False

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        overload = operator.name().removeprefix("aten::")
        name = overload.split(".")[0]
        self.restricts_values |= overload in VALUE_RESTRICTED
        takes_input = any(_address(value) in self._inputs for value in args if torch.is_tensor(value))
        self.hides_work |= name in STATISTICS
        self.is_shiftable |= name in SHIFTABLE and takes_input
        if name.removesuffix("_") in PIECEWISE:
            self.has_pieces |= takes_input
            self.hides_work |= not name.endswith("_") and _is_same(args[0], result)


def _is_same(first: object, second: object) -> bool:
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return False
    if (first.shape, first.dtype) != (second.shape, second.dtype) or not first.numel() or not first.dim():
        return False
    rows = max(1, PART * len(first) // first.numel())
    pairs = zip(torch.split(first, rows), torch.split(second, rows), strict=True)
    return all(torch.equal(ours, theirs) for ours, theirs in pairs)


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
