"""Calls modules with tensors like those of the calls that were seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.capture.comparison import FACTOR, find_gradients
from harness.capture.problem_text import find_end, list_facts
from harness.capture.runtime import take_tensors
from harness.capture.values import write_tensor
from harness.capture.watch import CallForm
from harness.domain import ProblemError
from harness.tensors.values import list_tensors


def find_constant(module: nn.Module, form: CallForm, device: torch.device) -> list[str]:
    """Return parameters without a gradient, or with one that is zero up to its rounding errors, as of a bias that a
    softmax or a normalisation cancels. Raises ProblemError."""
    module, tensors = copy.deepcopy(module), draw_tensors(form, device)
    try:
        own = differentiate(module, form, tensors)
    except Exception as error:  # of the user's code
        raise ProblemError(
            f"its backward pass fails: {(str(error).strip().splitlines() or [type(error).__name__])[0]}"
        ) from error
    try:
        precise = {name: one.double() if one.is_floating_point() else one for name, one in tensors.items()}
        exact = differentiate(module.double(), form, precise)
    except Exception:  # noqa: BLE001  # of the user's code, or it has no operators for float64
        exact = own
    errors = {name: float((one.double() - exact[name]).abs().max()) for name, one in own.items() if one.numel()}
    lost = [name for name, error in errors.items() if float(exact[name].abs().max()) <= FACTOR * error]
    learning = {name for name in own if name not in lost}
    return [name for name, _ in module.named_parameters() if f"self.{name}" not in learning]


def differentiate(
    module: nn.Module, form: CallForm, tensors: dict[str, Tensor], call: Callable[..., Any] | None = None
) -> dict[str, Tensor]:
    """Return gradients of inputs and, as self.NAME, parameters. `call` gets the inputs instead of the module."""
    sources: dict[str, Tensor] = {f"self.{name}": one for name, one in module.named_parameters() if one.requires_grad}
    sources |= {name: tensors[name].requires_grad_() for name, one in list_facts(form.arguments) if one.learns}
    with torch.enable_grad():
        outputs = list_tensors(call(**tensors) if call else _call(module, form, tensors))
    return dict(zip(sources, find_gradients(outputs, list(sources.values()), _weigh), strict=True))


def _weigh(output: Tensor) -> Tensor:
    return torch.linspace(-1.0, 1.0, output.numel(), device=output.device).to(output.dtype).view(output.shape)


def run(module: nn.Module, form: CallForm, tensors: dict[str, Tensor]) -> Any:
    """Call a copy of the module."""
    with torch.no_grad():
        return _call(copy.deepcopy(module), form, tensors)


def _call(module: nn.Module, form: CallForm, tensors: dict[str, Tensor]) -> Any:
    return take_tensors(module, form.arguments, form.positional)(*(one.clone() for one in tensors.values()))


def draw_tensors(form: CallForm, device: torch.device) -> dict[str, Tensor]:
    """Draw tensors like those of a call, by name."""
    drawn = {}
    for name, facts in list_facts(form.arguments):
        similar = replace(facts, full=find_end(name, [form]) is not None)
        drawn[name] = eval(write_tensor(similar, [str(size) for size in facts.shape]), {"torch": torch}).to(device)
    return drawn
