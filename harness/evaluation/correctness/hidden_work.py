"""Whether the given inputs hide work of the reference, which a program could leave out, and inputs that show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.domain import LOWERED, SHIFTED, SIGNED, VARIED
from harness.problems.operators import OperatorCalls, name_operator
from harness.tensors.trees import list_tensors, memory_of

# Defined in pieces, or computed so: all given values may lie in one of them.
PIECEWISE = {
    "relu", "leaky_relu", "_prelu_kernel", "elu", "threshold", "hardtanh", "hardsigmoid", "hardswish", "softshrink",
    "hardshrink", "clamp", "clamp_min", "clamp_max", "abs", "sign", "maximum", "minimum", "fmax", "fmin", "gt", "ge",
    "lt", "le", "smooth_l1_loss", "huber_loss", "linalg_vector_norm", "floor", "ceil", "round", "trunc", "frac", "fmod",
    "remainder", "atan2", "grid_sampler_2d", "grid_sampler_3d", "copysign", "sgn", "heaviside", "floor_divide", "eq",
    "ne", "gelu", "silu", "mish", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf",
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
    """Watches a run of the reference on `inputs`, which must live as long as it runs. They are not kept: a second set
    may not fit beside them."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self._addresses = {memory_of(tensor) for tensor in list_tensors(inputs)}
        self._has_pieces = self._has_inner_pieces = False
        self._shifts: set[str] = set()

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        super().note(operator, args, kwargs, result)
        name = name_operator(operator)
        takes_input = any(memory_of(value) in self._addresses for value in args if torch.is_tensor(value))
        self._shifts |= {kind for kind, names in SHIFTS.items() if takes_input and name in names}
        if name.removesuffix("_") in PIECEWISE:
            self._has_pieces |= takes_input
            self._has_inner_pieces |= not takes_input

    def list_steps(self, *, has_one_sign: bool) -> tuple[str, ...]:
        """`signed` where an operator in pieces is applied to an input, else `varied`; both where one is applied to
        other values and an input has values of one sign; and `list_shifts`."""
        if any(call.overload in VALUE_RESTRICTED for call in self.calls):
            return ()
        also = (SIGNED,) if self._has_inner_pieces and has_one_sign else ()
        return ((SIGNED,) if self._has_pieces else (VARIED, *also)) + self.list_shifts()

    def list_shifts(self) -> tuple[str, ...]:
        """`shifted` for a softmax or minimum of an input, `lowered` for a maximum."""
        return tuple(sorted(self._shifts))
