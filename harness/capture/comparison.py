"""Compares a model with kernels and the model itself: outputs, tokens, and time in interleaved pairs."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.capture.runtime import Dispatch, enable
from harness.capture.watch import CONSTANTS
from harness.problems.inputs.tensors import perturb
from harness.tensors.trees import list_leaves, list_tensors

FACTOR = 8.0  # of what one rounding of the weights changes
PAIRS = 15
BUDGET_S = 20.0  # of one comparison of times
MODES = ("eager", "compile", "graph")
Calls = Sequence[tuple[tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Time of the model itself divided by that with kernels, and both times of one call."""

    gain: float
    low: float
    high: float
    before_us: float
    after_us: float

    @property
    def pays(self) -> bool:
        return self.low > 1.0


def describe_difference(found: Any, expected: Any, factor: float = FACTOR) -> str:
    """Compare outputs of one module within `factor` roundings of the largest value; return "" if equal."""
    ours, theirs = list_tensors(found), list_tensors(expected)
    if [one.shape for one in ours] != [one.shape for one in theirs]:
        return f"shapes {[tuple(one.shape) for one in ours]} instead of {[tuple(one.shape) for one in theirs]}"
    for one, other in zip(ours, theirs, strict=True):
        if one.dtype is not other.dtype:
            return f"dtype {one.dtype} instead of {other.dtype}"
        error, allowed = _find_error(one, other), factor * _find_rounding(other)
        if not error <= allowed:
            return f"off by {error:.3g}, allowed {allowed:.3g}"
    return ""


def _find_error(one: Tensor, other: Tensor) -> float:
    """Equal infinities and NaN count as equal."""
    if not one.numel():
        return 0.0
    ours, theirs = one.double(), other.double()
    differs = (ours != theirs) & ~(ours.isnan() & theirs.isnan())
    return float(torch.where(differs, (ours - theirs).abs(), 0.0).nan_to_num(nan=float("inf")).max())


def _find_rounding(tensor: Tensor) -> float:
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    size = float(tensor.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    return size * torch.finfo(tensor.dtype).eps * 16


def run_calls(model: Callable[..., Any], calls: Calls) -> list[Any]:
    """Arguments are copied, since a model may change them."""
    with torch.no_grad():
        return [list_tensors(model(*args, **kwargs)) for args, kwargs in copy.deepcopy(list(calls))]


def compare_models(model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls) -> str:
    """Return how outputs differ by more than roundings of the weights explain, or ""."""
    expected = run_calls(model, calls)
    moved = copy.deepcopy(model)
    perturb([value.data for value in moved.parameters()], 0)
    nearby = run_calls(moved, calls)
    del moved
    with applied(dispatches):
        found = run_calls(model, calls)
    for at, (ours, theirs, near) in enumerate(zip(found, expected, nearby, strict=True)):
        for one, other, third in zip(ours, theirs, near, strict=True):
            allowed = FACTOR * max(_find_error(third, other), _find_rounding(other))
            if not _find_error(one, other) <= allowed:
                return f"call {at} of the model: off by {_find_error(one, other):.3g}, allowed {allowed:.3g}"
    return ""


@contextmanager
def applied(dispatches: Sequence[Dispatch]) -> Iterator[None]:
    """Kernels are in the model inside of the block."""
    enable(dispatches)
    try:
        yield
    finally:
        enable(dispatches, on=False)


def compare_tokens(model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, length: int) -> int | None:
    """Return the number of equal greedy tokens from the start, or None if the model is no language model."""
    tokens = find_tokens(model, calls)
    if tokens is None:
        return None
    expected = generate(model, tokens, length)
    with applied(dispatches):
        found = generate(model, tokens, length)
    equal = (expected == found).all(dim=0).tolist()
    return int([*equal, False].index(False))


def find_tokens(model: nn.Module, calls: Calls) -> Tensor | None:
    """Return an integer input of two dimensions if an output has a score for each of its elements."""
    args, kwargs = calls[0]
    given = [one for one in list_tensors((args, kwargs)) if one.dim() == 2 and one.dtype in (torch.int32, torch.int64)]
    outputs = run_calls(model, calls[:1])[0]
    has_scores = bool(given) and any(one.shape[:2] == given[0].shape and one.dim() == 3 for one in outputs)
    return given[0] if has_scores else None


def generate(model: nn.Module, tokens: Tensor, length: int) -> Tensor:
    """Return the tokens after the first half of `tokens`, each the most probable one."""
    tokens = tokens[:, : max(tokens.shape[1] // 2, 1)]
    made = []
    with torch.no_grad():
        for _ in range(length):
            scores = next(one for one in list_tensors(model(tokens)) if one.dim() == 3)
            made.append(scores[:, -1].argmax(-1))
            tokens = torch.cat([tokens, made[-1][:, None]], dim=1)
    return torch.stack(made, dim=1)


def measure_gain(before: Callable[[], object], after: Callable[[], object], calls: int, *, on_gpu: bool) -> Gain:
    """Time both in interleaved pairs, in changing order."""
    times: dict[Callable[[], object], list[float]] = {before: [], after: []}
    for one in (before, after):
        one()
    ends_s = time.perf_counter() + BUDGET_S
    for pair in range(PAIRS):
        for one in (before, after) if pair % 2 else (after, before):
            times[one].append(_time_us(one, on_gpu=on_gpu))
        if time.perf_counter() > ends_s and pair >= 5:
            break
    gain, low, high = bootstrap_ratio_interval(times[before], times[after], seed=0)
    middle = {one: sorted(found)[len(found) // 2] / calls for one, found in times.items()}
    return Gain(gain=gain, low=low, high=high, before_us=middle[before], after_us=middle[after])


def _time_us(work: Callable[[], object], *, on_gpu: bool) -> float:
    if on_gpu:
        torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    if on_gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - start_s) * 1e6


def make_runner(mode: str, model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls) -> Callable[[], object]:
    """Return a function that makes all calls. Raises whatever torch raises if the model does not allow the mode."""
    copies = _may_change(calls)
    if mode == "eager":
        return lambda: _run_applied(model, dispatches, calls, copies=copies)
    with applied(dispatches):
        own = copy.deepcopy(model)  # with its kernels
    chosen = torch.compile(own) if mode == "compile" else own
    _run(chosen, calls, copies=copies)
    if mode == "compile":
        return lambda: _run(chosen, calls, copies=copies)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _run(own, calls, copies=copies)
    return graph.replay


def _may_change(calls: Calls) -> bool:
    """A model may change other arguments than tensors and constants, such as caches."""
    return any(not isinstance(leaf, (Tensor, *CONSTANTS)) for leaf in list_leaves(list(calls)))


def _run_applied(model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, *, copies: bool) -> None:
    with applied(dispatches):
        _run(model, calls, copies=copies)


def _run(model: Callable[..., Any], calls: Calls, *, copies: bool) -> None:
    with torch.no_grad():
        for args, kwargs in copy.deepcopy(list(calls)) if copies else calls:
            model(*args, **kwargs)


def measure_modes(
    model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, modes: Sequence[str], *, on_gpu: bool
) -> dict[str, Gain | str]:
    """Map each mode to the gain, or to the reason why the model does not allow it."""
    found: dict[str, Gain | str] = {}
    for mode in modes:
        if mode == "graph" and not on_gpu:
            continue
        try:
            before, after = (make_runner(mode, model, chosen, calls) for chosen in ((), dispatches))
            found[mode] = measure_gain(before, after, len(calls), on_gpu=on_gpu)
        except Exception as error:  # noqa: BLE001  # of torch's compiler, or of the model
            found[mode] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}"
            with suppress(RuntimeError):
                torch.cuda.synchronize()
    return found
