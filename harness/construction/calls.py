"""Defines kinds of calls of a module, equal for reference, baseline and candidate.

- `forward`
- `backward` (`BACKWARD = True`): forward and backward. The gradients of the outputs are the last input; the gradients
  of the floating inputs and of the parameters, by name, are additional outputs, zero where there is none. Those that
  the reference detaches or freezes have none: `frozen` has positions of floating inputs, and names of parameters.
- `in_place` (`IN_PLACE = True`): forward; the inputs are additional outputs.
- `only_in_place`: the same for a reference that returns nothing; a candidate's return value is ignored.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import torch
from torch import Tensor, nn

from harness.domain import CallKind, WireError
from harness.protocol import flatten_value, rebuild_value

Forward = Callable[..., Any]


def call_with_gradients(
    forward: Forward, parameters: Mapping[str, Tensor], inputs: Sequence[Any], frozen: Collection[int | str] = ()
) -> tuple[Any, list[Tensor], dict[str, Tensor]]:
    """Outputs without a gradient, or of another form, are not differentiated: the comparison refuses them."""
    *given, gradients = inputs
    tree, tensors = flatten_value(tuple(given), torch.is_tensor)
    tensors = [tensor.detach() for tensor in tensors]
    sources = [tensor for at, tensor in enumerate(filter(torch.is_floating_point, tensors)) if at not in frozen]
    for tensor in sources:
        tensor.requires_grad_(True)
    with torch.enable_grad():
        form, outputs = flatten_value(forward(*rebuild_value(tree, tensors)), torch.is_tensor, by_name=True)
    found = _differentiate(select_differentiable(outputs), gradients, [*sources, *parameters.values()])
    of_inputs, of_parameters = found[: len(sources)], found[len(sources) :]
    named = dict(zip(parameters, of_parameters, strict=True))
    return rebuild_value(form, [output.detach() for output in outputs]), of_inputs, named


def select_differentiable(outputs: Sequence[Tensor]) -> list[Tensor]:
    return [output for output in outputs if output.is_floating_point()]


def _differentiate(outputs: Sequence[Tensor], gradients: Sequence[Tensor], targets: Sequence[Tensor]) -> list[Tensor]:
    pairs = [
        (output, gradient)
        for output, gradient in zip(outputs, gradients, strict=False)
        if output.requires_grad and (output.shape, output.dtype) == (gradient.shape, gradient.dtype)
    ]
    if not pairs:
        return [torch.zeros_like(target) for target in targets]
    roots, weights = zip(*pairs, strict=True)
    return list(torch.autograd.grad(roots, targets, weights, materialize_grads=True)) if targets else []


def make_call(
    kind: str,
    forward: Forward,
    model: nn.Module,
    returned_inputs: Sequence[int] = (),
    frozen: Collection[int | str] = (),
) -> Forward:
    """`forward` may be compiled; `returned_inputs` are positions among input tensors. Raises WireError."""
    if kind == "forward":
        return forward
    if kind in ("in_place", "only_in_place"):
        return partial(_return_inputs, forward, returned_inputs, kind == "in_place")
    if kind not in get_args(CallKind):
        raise WireError(f"unknown kind of call {kind!r}")
    named = model.named_parameters()
    parameters = {name: value for name, value in named if value.is_floating_point() and name not in frozen}
    for value in parameters.values():
        value.requires_grad_(True)
    return lambda *inputs: call_with_gradients(forward, parameters, inputs, frozen)


def _return_inputs(forward: Forward, returned: Sequence[int], has_results: bool, *inputs: Any) -> dict[str, Any]:
    """Add the inputs' memory to the outputs, even if `forward` rebinds their names; first, since keys are sorted."""
    tensors = [tensor.detach() for tensor in flatten_value(tuple(inputs), torch.is_tensor)[1]]
    results = forward(*inputs)
    return {
        "returned": results if has_results else None,
        "inputs": [tensor if at in returned else None for at, tensor in enumerate(tensors)],
    }


class _Adapted:
    """Precedes a module's class in the order of inheritance, so that its state keeps its names."""

    call_kind: CallKind
    returned_inputs: Sequence[int]
    frozen: Collection[int | str]

    def forward(self, *inputs: Any) -> Any:
        assert isinstance(self, nn.Module)
        forward = super().forward  # type: ignore[misc]
        return make_call(self.call_kind, forward, self, self.returned_inputs, self.frozen)(*inputs)


def adapt_call(
    model: nn.Module, kind: CallKind, returned_inputs: Sequence[int] = (), frozen: Collection[int | str] = ()
) -> nn.Module:
    if kind != "forward":
        usual, own = type(model), {"call_kind": kind, "returned_inputs": tuple(returned_inputs), "frozen": frozen}
        model.__class__ = type(usual.__name__, (_Adapted, usual), own)
    return model
