"""A call of a module forward and backward, as one call: `BACKWARD = True` in a problem's file.

Reference, baseline and candidate go through `call_with_gradients`. The gradients of the outputs are the last input; the
gradients of the floating inputs and of the parameters, by name, are outputs beside those of the module. What no
gradient reaches has one of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from harness.protocol import flatten_value, rebuild_value


def call_with_gradients(
    forward: Callable[..., Any], parameters: Mapping[str, Tensor], inputs: Sequence[Any]
) -> tuple[Any, list[Tensor], dict[str, Tensor]]:
    """Outputs that lack a gradient, or are not of its form, are not differentiated: the comparison refuses them."""
    *given, gradients = inputs
    tree, tensors = flatten_value(tuple(given), torch.is_tensor)
    tensors = [tensor.detach().requires_grad_(tensor.is_floating_point()) for tensor in tensors]
    with torch.enable_grad():
        form, outputs = flatten_value(forward(*rebuild_value(tree, tensors)), torch.is_tensor, by_name=True)
    sources = [tensor for tensor in tensors if tensor.requires_grad]
    found = _differentiate(select_differentiable(outputs), gradients, [*sources, *parameters.values()])
    of_inputs, of_parameters = found[: len(sources)], found[len(sources) :]
    named = dict(zip(parameters, of_parameters, strict=True))
    return rebuild_value(form, [output.detach() for output in outputs]), of_inputs, named


def select_differentiable(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Those that have a gradient among the inputs."""
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


def require_parameter_gradients(model: nn.Module) -> dict[str, Tensor]:
    """The floating parameters, by name."""
    floating: dict[str, Tensor] = {name: value for name, value in model.named_parameters() if value.is_floating_point()}
    for value in floating.values():
        value.requires_grad_(True)
    return floating


class _Differentiated:
    """Before a module's class in the order of inheritance, so that its state keeps its names."""

    def forward(self, *inputs: Any) -> Any:
        assert isinstance(self, nn.Module)
        forward = super().forward  # type: ignore[misc]
        return call_with_gradients(forward, require_parameter_gradients(self), inputs)


def differentiate(model: nn.Module) -> nn.Module:
    """The same module, whose call is forward and backward."""
    kind = type(model)
    model.__class__ = type(kind.__name__, (_Differentiated, kind), {})
    return model
