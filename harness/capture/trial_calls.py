"""Calls modules with tensors like those of the calls that were seen."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.capture.comparison import FACTOR, choose_clock, expect, find_gradients, make_runner, measure_gain
from harness.capture.graph_code import list_state
from harness.capture.problem_text import ProblemText, describe_failure, find_end, list_facts
from harness.capture.runtime import fill_outputs, take_tensors
from harness.capture.values import write_tensor
from harness.capture.watch import CallForm
from harness.domain import ProblemError
from harness.domain.errors import name_cause
from harness.tensors.values import list_tensors

SEED = 20
TIMED_CALLS = 5  # in one CUDA graph
SLOWDOWN = 1.03  # below, a problem and its module count as equally fast


def find_constant(module: nn.Module, form: CallForm, device: torch.device) -> list[str]:
    """Return parameters without a gradient, or with one that is zero up to its rounding errors, as of a bias that a
    softmax or a normalisation cancels. Raises ProblemError."""
    module, tensors = copy.deepcopy(module), draw_tensors(form, device)
    try:
        own = differentiate(module, form, tensors)
    except Exception as error:  # of the user's code
        raise ProblemError(f"its backward pass fails: {name_cause(error)}") from error
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


def require_equal(
    module: nn.Module, text: ProblemText, values: Mapping[str, int], device: torch.device, *, gradients: bool
) -> None:
    """Compare the problem's model with the module on inputs of the problem, in sizes of these `values`. Raises
    ProblemError."""
    form = text.sizes.resize(text.forms[0], values)
    original, written, tensors = _prepare(module, text, values, device)
    try:
        expected = run(original, form, tensors)
    except Exception as error:  # of the user's code
        raise ProblemError(f"it fails on random inputs: {describe_failure(error)}") from error

    def call(**given: Tensor) -> Any:
        found = written(*(given[name] for name in text.inputs))
        return fill_outputs(ast.literal_eval(text.outputs), found, given)

    try:
        with torch.no_grad():
            torch.testing.assert_close(call(**tensors), expected, equal_nan=True)
        if gradients:
            found, expected = differentiate(written, form, tensors, call), differentiate(original, form, tensors)
            torch.testing.assert_close(found, {name: expected[name] for name in found}, equal_nan=True)
    except (AssertionError, RuntimeError, TypeError, AttributeError, NameError, ValueError, IndexError) as error:
        raise ProblemError("its code computes other values than the module") from error


def _prepare(
    module: nn.Module, text: ProblemText, values: Mapping[str, int], device: torch.device
) -> tuple[nn.Module, nn.Module, dict[str, Tensor]]:
    """Return a copy of the module and the problem's model, with equal states, and inputs of the problem."""
    namespace, form = load_text(text.text), text.sizes.resize(text.forms[0], values)
    namespace.update(values)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(SEED)
        inputs = [one.to(device) for one in namespace["get_inputs"]()]
        written = namespace["Model"]().to(device)
    original = copy.deepcopy(module)
    copy_state(original, written)
    return original, written, draw_tensors(form, device) | dict(zip(text.inputs, inputs, strict=True))


def copy_module(module: nn.Module, device: torch.device) -> nn.Module:
    """Return it without hooks, which surround kernels, too."""
    module = copy.deepcopy(module).to(device)
    module._forward_pre_hooks.clear()
    module._forward_hooks.clear()
    return module


def compare_times(module: nn.Module, text: ProblemText, device: torch.device) -> float:
    """Return the time of the problem's model divided by the module's; 1 if they differ by less than SLOWDOWN."""
    values = text.sizes.values[0]
    original, written, tensors = _prepare(copy_module(module, device), text, values, device)
    form = text.sizes.resize(text.forms[0], values)
    calls = TIMED_CALLS if device.type == "cuda" else 1
    ours = expect(written, [(tuple(tensors[name] for name in text.inputs), {})] * calls)
    theirs = expect(take_tensors(original, form.arguments, form.positional), [(tuple(tensors.values()), {})] * calls)
    try:
        runners = [make_runner("graph", (), one) for one in (ours, theirs)]
    except Exception:  # noqa: BLE001  # on a CPU, or the module allows no graph
        runners = [make_runner("eager", (), one) for one in (ours, theirs)]
    gain = measure_gain(runners[0], runners[1], calls, clock=choose_clock(written))
    return gain.gain if gain.low > SLOWDOWN else 1.0


def load_text(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "captured"}
    exec(compile(text, "captured problem", "exec"), namespace)
    return namespace


def copy_state(source: nn.Module, target: nn.Module) -> None:
    """Raises ProblemError if names or shapes differ."""
    wanted, own = list_state(source), list_state(target)
    if {n: (v.shape, v.dtype) for n, v in wanted.items()} != {n: (v.shape, v.dtype) for n, v in own.items()}:
        raise ProblemError(f"its state {sorted(wanted)} cannot be written as {sorted(own)}")
    with torch.no_grad():
        for name, value in wanted.items():
            own[name].copy_(value)


def behaves_equally(one: nn.Module, other: nn.Module, form: CallForm, device: torch.device) -> bool:
    """Compare two modules of equal state on random inputs; the weights of the first are used for both."""
    one, other = (copy_module(module, device) for module in (one, other))
    try:
        copy_state(one, other)
        tensors = draw_tensors(form, device)
        torch.testing.assert_close(*(run(module, form, tensors) for module in (one, other)), equal_nan=True)
    except (ProblemError, AssertionError, RuntimeError, TypeError):
        return False
    return True
