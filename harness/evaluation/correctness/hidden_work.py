"""Whether the given inputs hide work of the reference, which a program could leave out, and inputs that show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import LOWERED, SHIFTED, SIGNED, VARIED
from harness.problems.operators import OperatorCalls, name_operator
from harness.problems.own_values import count_part, is_uniform
from harness.problems.tensor_trees import list_tensors

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
# Some subtract the largest value first; programs may begin others with 0 instead of an infinity.
EXPONENTIALS = {"_softmax", "_log_softmax", "_safe_softmax", "logsumexp"}
MAXIMA = {
    "amax", "max", "cummax", "max_pool1d", "max_pool2d_with_indices", "max_pool3d_with_indices", "mkldnn_max_pool2d",
    "mkldnn_max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
}  # fmt: skip
MINIMA = {"amin", "min", "cummin"}
SHIFTS = {SHIFTED: EXPONENTIALS | MINIMA, LOWERED: MAXIMA}


class HiddenWork(OperatorCalls):  # type: ignore[no-untyped-call]
    """Watches a run of the reference on `inputs`."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self._tensors = list_tensors(inputs)
        self._addresses = {_address(tensor) for tensor in self._tensors}
        self._has_pieces = False
        self._hides_work = any(map(is_uniform, self._tensors))
        self._shifts: set[str] = set()

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        super().note(operator, args, kwargs, result)
        name = name_operator(operator)
        takes_input = any(_address(value) in self._addresses for value in args if torch.is_tensor(value))
        self._hides_work |= name in STATISTICS
        self._shifts |= {kind for kind, names in SHIFTS.items() if takes_input and name in names}
        if name.removesuffix("_") in PIECEWISE:
            self._has_pieces |= takes_input
            self._hides_work |= not name.endswith("_") and _is_same(args[0], result)

    def list_steps(self) -> tuple[str, ...]:
        """`signed` where an operator in pieces is applied to an input; `varied` where one changes nothing, statistics
        are computed, or an input is all zeros or ones; `shifted` for a softmax or minimum of an input, `lowered` for a
        maximum."""
        if any(call.overload in VALUE_RESTRICTED for call in self.calls):
            return ()
        shifts = tuple(sorted(self._shifts))
        if self._has_pieces:
            return (SIGNED, *shifts)
        return (VARIED, *shifts) if self._hides_work else shifts


def _is_same(first: object, second: object) -> bool:
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return False
    if (first.shape, first.dtype) != (second.shape, second.dtype) or not first.numel() or not first.dim():
        return False
    rows = max(1, count_part(first) * len(first) // first.numel())
    pairs = zip(torch.split(first, rows), torch.split(second, rows), strict=True)
    return all(torch.equal(ours, theirs) for ours, theirs in pairs)


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
