"""Which calls with inputs near the given ones (`harness.problems.own_values`) a problem has, beside those that it
declares. Where legitimate programs may differ there is none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import BIASED, SPARSE, ProblemError
from harness.evaluation.correctness.hidden_work import HiddenWork
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorCall, OperatorCalls
from harness.problems.own_values import PATTERNS
from harness.problems.tensor_trees import list_tensors

# Largest share of the allowed error that one rounding of the inputs may cause. In 16-bit formats the roundings of
# inputs and outputs are half of what is allowed.
CALM, CALM_IN_16_BITS = 0.5, 1.0
# Their results depend on which of two close values is larger.
ORDERING = {
    "sort", "argsort", "topk", "argmax", "argmin", "kthvalue", "median", "mode", "searchsorted", "bucketize", "histc",
    "unique_dim", "_unique2", "multinomial", "bernoulli", "bernoulli_", "poisson", "binomial",
}  # fmt: skip
DRAWS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "random_", "ones",
    "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ELEMENTWISE = {
    "empty", "empty_like", "new_empty", "mul", "add", "sub", "rsub", "div", "neg", "clone", "detach", "_to_copy",
    "view", "reshape", "_unsafe_view", "transpose", "permute", "t", "unsqueeze", "squeeze",
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
    legitimate programs compute the variance with different accuracy. Inputs with structure (triangular, symmetric,
    normalised, absolute values) keep it, since legitimate programs may rely on it."""
    problem = loaded.problem
    is_floating = all(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs)
    if problem.only_as_given or not is_floating or not _has_usable(inputs):
        return ()
    copies = copy_tensors(inputs, device)
    watch = OperatorCalls() if problem.stress_distributions else HiddenWork(copies)
    if not _runs(loaded, model, copies, changing, watch) or _orders_values(watch):
        return ()
    has_weights = any(tensor.is_floating_point() for tensor in model.state_dict().values() if torch.is_tensor(tensor))
    if not _draws_independently(loaded):
        return (BIASED,)
    revealing = watch.list_steps() if isinstance(watch, HiddenWork) else ()  # declared values reveal it, too
    sparse = () if has_weights or changing or problem.backward else (SPARSE,)
    return (BIASED, *revealing, *sparse)


def _draws_independently(loaded: LoadedProblem) -> bool:
    """Each element of the inputs is drawn by itself. False where `get_inputs` needs real values."""
    watch = OperatorCalls()
    with suppress(ProblemError), watch:
        inputs = loaded.make_inputs(0, torch.device("meta"))
        tensors = [one for one in list_tensors(inputs) if one.is_floating_point()]
        draws = sum(count for call, count in watch.calls.items() if call.name in DRAWS)
        return draws >= len(tensors) and all(map(_keeps_independence, watch.calls))
    return False


def _keeps_independence(call: OperatorCall) -> bool:
    return call.name in DRAWS or (call.name in ELEMENTWISE and call.tensors <= 1)


def _has_usable(inputs: Sequence[Any]) -> bool:
    return any(tensor.dtype in PATTERNS for tensor in list_tensors(inputs))


def _runs(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], changing: dict[str, Tensor], watch: OperatorCalls
) -> bool:
    """Whether the reference runs while it is watched."""
    ran = False
    with suppress(ProblemError):
        with watch:
            run_reference(loaded, model, inputs)
        ran = True
    write_state(model, changing)
    return ran


def _orders_values(watch: OperatorCalls) -> bool:
    return any(call.name in ORDERING or call.converts_to_integers for call in watch.calls)
