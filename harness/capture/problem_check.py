"""Chooses the calls that one problem covers, writes its text, and compares it with the module in the model."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from harness.capture.graph_code import list_state
from harness.capture.problem_text import (
    ProblemText,
    describe_family,
    export_module,
    list_facts,
    name_sizes,
    require_plain,
    require_plain_state,
    split_arguments,
    write_text,
)
from harness.capture.runtime import fits
from harness.capture.values import TensorFacts, write_tensor
from harness.capture.watch import CallForm
from harness.domain import ProblemError
from harness.tensors.trees import list_tensors

SEED = 20


def make_problem(
    module: nn.Module, forms: Sequence[CallForm], *, summary: str, settings: Sequence[str], device: torch.device
) -> ProblemText:
    """Raises ProblemError with the reason why the module cannot be a problem."""
    require_plain_state(module)
    text = _write_and_check(module, _choose_family(forms), summary, settings, device)
    covered = sum(form.count for form in text.forms if _is_covered(form, text))
    total = sum(form.count for form in forms)
    if covered < total:
        text.left_out.append(f"{total - covered} of {total} calls have other shapes or arguments")
    return text


def _is_covered(form: CallForm, text: ProblemText) -> bool:
    shapes = [facts.shape for _, facts in list_facts(form.arguments)]
    return any(fits(shapes, known) for known in text.shapes)


def _choose_family(forms: Sequence[CallForm]) -> list[CallForm]:
    """Return the most frequent calls of equal form, the most frequent one first. Raises ProblemError."""
    families: dict[str, list[CallForm]] = defaultdict(list)
    for form in forms:
        families[describe_family(form)].append(form)
    family = max(families.values(), key=lambda members: sum(one.count for one in members))
    require_plain(family[0])
    return sorted(family, key=lambda one: -one.count)


def _write_and_check(
    module: nn.Module, forms: list[CallForm], summary: str, settings: Sequence[str], device: torch.device
) -> ProblemText:
    """Cover all sizes with one graph if torch.export can, else only the most frequent ones."""
    nonnegative = list(_find_nonnegative(module, forms[0], device))
    failures: list[ProblemError] = []
    for tried, plain in product((forms, forms[:1]) if len(forms) > 1 else (forms,), (False, True)):
        sizes = name_sizes(tried)
        largest = max(tried, key=_count_elements)
        try:
            given = fill(largest.arguments, draw_tensors(largest, device))
            exported = export_module(copy.deepcopy(module), largest, given, sizes)
            text = write_text(
                module, exported, tried, sizes, summary=summary, settings=settings, nonnegative=nonnegative, plain=plain
            )
            if all(_equals(module, text, at, device) for at in range(len(tried))):
                return text
            failures.append(ProblemError("its code computes other values than the module"))
        except ProblemError as error:
            failures.append(error)
    raise failures[-1]


def _find_nonnegative(module: nn.Module, form: CallForm, device: torch.device) -> Iterator[str]:
    """Yield inputs without negative values for which the module is undefined there (logarithms, roots)."""
    tensors = draw_tensors(form, device)
    for name, facts in list_facts(form.arguments):
        if facts.pattern == "uniform":
            try:
                results = _run(module, form, tensors | {name: -tensors[name] - 1e-3})
            except (RuntimeError, ValueError, AssertionError):  # it refuses them
                yield name
                continue
            if any(bool(one.isnan().any()) for one in list_tensors(results) if one.is_floating_point()):
                yield name


def _run(module: nn.Module, form: CallForm, tensors: dict[str, Tensor]) -> Any:
    """Call a copy of the module."""
    module = copy.deepcopy(module)
    positional, named = split_arguments(module, fill(form.arguments, tensors))
    with torch.no_grad():
        return module(*positional, **named)


def _count_elements(form: CallForm) -> int:
    return sum(math.prod(facts.shape) for _, facts in list_facts(form.arguments))


def draw_tensors(form: CallForm, device: torch.device) -> dict[str, Tensor]:
    """Draw tensors like those of a call, by name."""
    return {
        name: eval(write_tensor(facts, [str(size) for size in facts.shape]), {"torch": torch}).to(device)
        for name, facts in list_facts(form.arguments)
    }


def fill(arguments: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Replace facts by the tensors of their names."""
    if type(arguments) in (list, tuple, dict):
        items = arguments.items() if isinstance(arguments, dict) else enumerate(arguments)
        filled = {key: fill(value, tensors, f"{name}_{key}" if name else str(key)) for key, value in items}
        return filled if isinstance(arguments, dict) else type(arguments)(filled.values())
    return tensors[name].clone() if isinstance(arguments, TensorFacts) else arguments


def _equals(module: nn.Module, text: ProblemText, at: int, device: torch.device) -> bool:
    """Compare the problem's model with the module on inputs of the problem, in sizes of the form `at`."""
    namespace, form = load_text(text.text), text.forms[at]
    namespace.update(text.sizes.values[at])
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(SEED)
        inputs = [one.to(device) for one in namespace["get_inputs"]()]
        written = namespace["Model"]().to(device)
    original = copy.deepcopy(module)
    copy_state(original, written)
    tensors = draw_tensors(form, device) | dict(zip(text.inputs, inputs, strict=True))
    try:
        expected = _run(original, form, tensors)
        with torch.no_grad():
            torch.testing.assert_close(written(*inputs), expected, equal_nan=True)
    except (AssertionError, RuntimeError, TypeError, AttributeError, NameError, ValueError, IndexError):
        return False
    return True


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
    other = copy.deepcopy(other)
    try:
        copy_state(one, other)
        tensors = draw_tensors(form, device)
        torch.testing.assert_close(*(_run(module, form, tensors) for module in (one, other)), equal_nan=True)
    except (ProblemError, AssertionError, RuntimeError, TypeError):
        return False
    return True
