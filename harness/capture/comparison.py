"""Compares a model with kernels and the model itself: outputs, tokens, and time in interleaved pairs."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.capture.runtime import Dispatch, enable
from harness.capture.watch import CONSTANTS
from harness.problems.inputs.tensors import perturb
from harness.tensors.trees import list_leaves, list_tensors, map_tensors

FACTOR = 8.0  # of what one rounding of the weights changes
PAIRS = 15
NOISE_FLOOR = 0.003  # a model and its own modules as kernels differed by 0.1 % on an H200
BUDGET_S = 20.0  # of one comparison of times
MODES = ("eager", "compile", "graph")
Call = tuple[tuple[Any, ...], dict[str, Any]]
Calls = Sequence[Call]


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
        return self.low > 1.0 + NOISE_FLOOR


def describe_difference(found: Any, expected: Any, factor: float = FACTOR) -> str:
    """Compare outputs of one module within `factor` roundings of the largest value; return "" if equal."""
    if type(found) is not type(expected) and not (isinstance(found, Tensor) and isinstance(expected, Tensor)):
        return f"a {type(found).__name__} instead of a {type(expected).__name__}"
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
    ours, theirs = one.detach().double(), other.detach().double()
    differs = (ours != theirs) & ~(ours.isnan() & theirs.isnan())
    return float(torch.where(differs, (ours - theirs).abs(), 0.0).nan_to_num(nan=float("inf")).max())


def _find_rounding(tensor: Tensor) -> float:
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    size = float(tensor.detach().double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    return size * torch.finfo(tensor.dtype).eps * 16


def run_calls(model: nn.Module, calls: Calls, *, gradients: bool = False) -> list[list[Tensor]]:
    """Return the outputs of each call, and gradients of the parameters. A model may change copies of the arguments
    only, no buffer, and draws the same random numbers each time."""
    found = []
    with _unchanged(model), torch.set_grad_enabled(gradients):
        for args, kwargs in copy_calls(calls):
            outputs = list_tensors(model(*args, **kwargs))
            found.append([one.detach() for one in (*outputs, *(_find_gradients(model, outputs) if gradients else ()))])
    return found


def _find_gradients(model: nn.Module, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Of the sum of all outputs."""
    roots = [one for one in outputs if one.requires_grad]
    parameters = [one for one in model.parameters() if one.requires_grad]
    given = [torch.ones_like(one) for one in roots]
    found = torch.autograd.grad(roots, parameters, given, allow_unused=True) if roots else ()
    return [one for one in found if one is not None]


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    buffers = {value: value.clone() for value in model.buffers() if not value.is_inference()}
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        try:
            yield
        finally:
            for value, before in buffers.items():
                value.copy_(before)


def copy_calls(calls: Calls) -> Calls:
    """Return equal arguments."""
    return copy.deepcopy(list(calls))


def compare_models(model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, *, gradients: bool = False) -> str:
    """Return how outputs and gradients differ by more than roundings of the weights explain, or ""."""
    expected = run_calls(model, calls, gradients=gradients)
    moved = copy.deepcopy(model)
    perturb([value.data for value in moved.parameters()], 0)
    nearby = run_calls(moved, calls, gradients=gradients)
    del moved
    with applied(dispatches):
        found = run_calls(model, calls, gradients=gradients)
    for at, (ours, theirs, near) in enumerate(zip(found, expected, nearby, strict=True)):
        for one, other, third in zip(ours, theirs, near, strict=True):
            allowed = FACTOR * max(_find_error(third, other), _find_rounding(other))
            if not _find_error(one, other) <= allowed:
                return f"call {at} of the model: off by {_find_error(one, other):.3g}, allowed {allowed:.3g}"
    return ""


def allow_losses(expected: Sequence[float], nearby: Sequence[float]) -> float:
    """Return by how much losses may differ if those of `nearby` weights do."""
    rounding = 16 * torch.finfo(torch.float32).eps * max(map(abs, expected), default=0.0)
    moved = max((abs(one - other) for one, other in zip(expected, nearby, strict=False)), default=0.0)
    return FACTOR * max(rounding, moved)


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
    expected = generate(model, calls[0], tokens, length)
    with applied(dispatches):
        found = generate(model, calls[0], tokens, length)
    equal = (expected == found).all(dim=0).tolist()
    return int([*equal, False].index(False))


def find_tokens(model: nn.Module, calls: Calls) -> Tensor | None:
    """Return an integer input of two dimensions if an output has scores for each of its elements, or for the last."""
    given = [one for one in list_tensors(calls[0]) if one.dim() == 2 and one.dtype in (torch.int32, torch.int64)]
    outputs = run_calls(model, calls[:1])[0]
    return next((one for one in given if any(_has_scores(output, one) for output in outputs)), None)


def _has_scores(output: Tensor, tokens: Tensor) -> bool:
    is_scores = output.dim() == 3 and output.shape[0] == tokens.shape[0] and output.is_floating_point()
    return is_scores and output.shape[1] in (1, tokens.shape[1])


def generate(model: nn.Module, call: Call, given: Tensor, length: int) -> Tensor:
    """Return the most probable tokens, one after the other. Each replaces the oldest one of `given`, an argument of the
    call: the shapes stay those that the kernels are for."""
    tokens, made = given, []
    for _ in range(length):
        (outputs,) = run_calls(model, [_replace(call, given, tokens)])
        scores = next(one for one in outputs if _has_scores(one, tokens))
        made.append(scores[:, -1].argmax(-1))
        tokens = torch.cat([tokens[:, 1:], made[-1][:, None].to(tokens.dtype)], dim=1)
    return torch.stack(made, dim=1)


def _replace(call: Call, given: Tensor, by: Tensor) -> Call:
    args, kwargs = map_tensors(call, lambda one: by if one is given else one)
    return args, kwargs


@dataclass(slots=True, eq=False)
class Runner:
    """`work` makes the calls. Arguments are copied, and `dispatches` put into the model, outside of the time."""

    work: Callable[[Calls], object]
    calls: Calls = ()
    dispatches: Sequence[Dispatch] = ()

    def measure_us(self, clock: Callable[[], float]) -> float:
        with applied(self.dispatches):
            calls = copy_calls(self.calls) if _may_change(self.calls) else self.calls
            start_s = clock()
            self.work(calls)
            return (clock() - start_s) * 1e6


def measure_gain(before: Runner, after: Runner, calls: int, *, clock: Callable[[], float]) -> Gain:
    """Time both in interleaved pairs, in changing order, after one run of each."""
    times: tuple[list[float], list[float]] = ([], [])
    sides = ((before, times[0]), (after, times[1]))
    for runner, _ in sides:
        runner.measure_us(clock)
    ends_s = clock() + BUDGET_S
    for pair in range(PAIRS):
        for runner, found in sides if pair % 2 else sides[::-1]:
            found.append(runner.measure_us(clock))
        if clock() > ends_s and pair >= 5:
            break
    gain, low, high = bootstrap_ratio_interval(*times, seed=0)
    before_us, after_us = (median(found) / calls for found in times)
    return Gain(gain=gain, low=low, high=high, before_us=before_us, after_us=after_us)


def choose_clock(model: nn.Module) -> Callable[[], float]:
    """Return a clock that waits for the GPU's work."""

    def synchronized() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronized if is_on_gpu(model) else time.perf_counter


def make_runner(
    mode: str, model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, *, gradients: bool = False
) -> Runner:
    """Raises whatever torch raises if the model does not allow the mode."""
    if mode == "eager":
        return Runner(lambda given: _run(model, given, gradients=gradients), calls, dispatches)
    with applied(dispatches):
        own = copy_structure(model)  # with its kernels
    chosen = torch.compile(own) if mode == "compile" else own
    with _warm_stream(mode):
        _run(chosen, copy_calls(calls), gradients=gradients)
    if mode == "compile":
        return Runner(lambda given: _run(chosen, given, gradients=gradients), calls)
    graph, static = torch.cuda.CUDAGraph(), copy_calls(calls)
    with torch.cuda.graph(graph):
        _run(own, static, gradients=gradients)
    return Runner(partial(_replay, graph, own), static)


def _replay(graph: torch.cuda.CUDAGraph, model: nn.Module, calls: Calls) -> None:
    """The graph uses memory of the model and the arguments."""
    graph.replay()


def copy_structure(model: nn.Module) -> nn.Module:
    """Copy modules, which share the parameters and buffers of the model."""
    shared = (*model.parameters(), *model.buffers())
    return copy.deepcopy(model, {id(value): value for value in shared})


@contextmanager
def _warm_stream(mode: str) -> Iterator[None]:
    """A CUDA graph needs calls in another stream first, which load kernels and libraries."""
    if mode != "graph":
        yield
        return
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


def _may_change(calls: Calls) -> bool:
    """A model may change other arguments than tensors and constants, such as caches."""
    return any(not isinstance(leaf, (Tensor, *CONSTANTS)) for leaf in list_leaves(list(calls)))


def _run(model: Any, calls: Calls, *, gradients: bool) -> None:
    with torch.set_grad_enabled(gradients):
        for args, kwargs in calls:
            outputs = model(*args, **kwargs)
            if gradients:
                _find_gradients(model, list_tensors(outputs))


def measure_mode(
    mode: str, model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, *, gradients: bool = False
) -> Gain:
    before, after = (make_runner(mode, model, one, calls, gradients=gradients) for one in ((), dispatches))
    return measure_gain(before, after, len(calls), clock=choose_clock(model))


def measure_modes(
    model: nn.Module, dispatches: Sequence[Dispatch], calls: Calls, modes: Sequence[str], *, gradients: bool = False
) -> dict[str, Gain | str]:
    """Map each mode to the gain, or to the reason why the model does not allow it."""
    found: dict[str, Gain | str] = {}
    for mode in modes:
        if mode == "graph" and not is_on_gpu(model):
            found[mode] = "a CUDA graph needs a model on a GPU"
            continue
        try:
            found[mode] = measure_mode(mode, model, dispatches, calls, gradients=gradients)
        except Exception as error:  # noqa: BLE001  # of torch's compiler, or of the model
            found[mode] = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
            with suppress(RuntimeError):
                choose_clock(model)()
    return found


def is_on_gpu(model: nn.Module) -> bool:
    return any(value.device.type == "cuda" for value in model.parameters())
