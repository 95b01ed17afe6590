"""Which calls with `biased`, `sparse` and `varied` inputs (`harness.problems.own_values`) a problem has, beside those
that it declares. Where legitimate programs may differ there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import BIASED, SPARSE, VARIED, ProblemError
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems import own_values
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorWatch
from harness.protocol import flatten_value

# Largest share of the allowed error that one rounding of the inputs may cause. In 16-bit formats the roundings of
# inputs and outputs are half of what is allowed.
CALM, CALM_IN_16_BITS = 0.5, 1.0
# Their results depend on which of two close values is larger.
ORDERING = {
    "sort", "argsort", "topk", "argmax", "argmin", "kthvalue", "median", "mode", "searchsorted", "bucketize", "histc",
    "unique_dim", "_unique2", "multinomial", "bernoulli", "bernoulli_", "poisson", "binomial",
}  # fmt: skip
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


def list_own_steps(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    *,
    changing: dict[str, Tensor],
    device: torch.device,
) -> tuple[str, ...]:
    """Runs the reference once. `sparse` only without weights: those may make nearly constant values of it, of which
    legitimate programs compute the variance with different accuracy. `varied`, unless the problem declares
    other values, where an operator in pieces has an input, statistics are computed, or an input is zeros or ones."""
    problem = loaded.problem
    is_floating = all(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs)
    if problem.only_as_given or not is_floating or not _has_usable(inputs):
        return ()
    watch = _watch_operators(loaded, model, inputs, changing, device)
    if watch.orders_values:
        return ()
    has_weights = any(tensor.is_floating_point() for tensor in model.state_dict().values() if torch.is_tensor(tensor))
    is_uniform = any(map(own_values.is_uniform, flatten_value(tuple(inputs), torch.is_tensor)[1]))
    hides_work = (watch.hides_work or is_uniform) and not problem.stress_distributions
    sparse = () if has_weights or changing or problem.backward else (SPARSE,)
    return (BIASED, *[VARIED] * hides_work, *sparse)


def _has_usable(inputs: Sequence[Any]) -> bool:
    return any(tensor.dtype in own_values.PATTERNS for tensor in flatten_value(tuple(inputs), torch.is_tensor)[1])


def _watch_operators(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    changing: dict[str, Tensor],
    device: torch.device,
) -> _WatchOperators:
    copies = copy_tensors(inputs, device)
    watch = _WatchOperators(copies)
    try:
        with watch:
            run_reference(loaded, model, copies)
    except ProblemError:  # it does not run so
        watch.orders_values = True
    write_state(model, changing)
    return watch


class _WatchOperators(OperatorWatch):  # type: ignore[no-untyped-call]
    """Detects operators on the order of values, and conversions to integers; and operators that the given values may
    hide."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self._inputs = {_address(tensor) for tensor in flatten_value(tuple(inputs), torch.is_tensor)[1]}
        self.orders_values = False
        self.hides_work = False

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, wanted = operator.name().removeprefix("aten::").split(".")[0], kwargs.get("dtype")
        self.orders_values |= name in ORDERING
        self.hides_work |= name in STATISTICS
        if name.removesuffix("_") in PIECEWISE:
            self.hides_work |= any(_address(value) in self._inputs for value in args if torch.is_tensor(value))
        if name == "_to_copy" and wanted is not None:
            self.orders_values |= args[0].is_floating_point() and not wanted.is_floating_point


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
