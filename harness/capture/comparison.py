"""Compares a model with kernels and the model itself: outputs, tokens, and time in interleaved pairs."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.capture.runtime import Dispatch, enable, fork_random_numbers, list_gpus
from harness.problems.inputs.tensors import perturb
from harness.tensors.values import list_tensors, map_tensors

FACTOR = 8.0  # of what one rounding of the weights changes
PAIRS = 15
NOISE_FLOOR = 0.003  # a model and its own modules as kernels differed by 0.1 % on an H200
BUDGET_S = 20.0  # of one comparison of times
MODES = ("eager", "compile", "graph")
Call = tuple[tuple[Any, ...], dict[str, Any]]
Calls = Sequence[Call]
Outputs = list[list[Tensor]]  # and gradients, of each call


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


def describe_difference(found: Any, expected: Any) -> str:
    """Compare outputs of one module within FACTOR roundings of the largest value; return "" if equal."""
    if type(found) is not type(expected) and not (isinstance(found, Tensor) and isinstance(expected, Tensor)):
        return f"a {type(found).__name__} instead of a {type(expected).__name__}"
    ours, theirs = list_tensors(found), list_tensors(expected)
    if [one.shape for one in ours] != [one.shape for one in theirs]:
        return f"shapes {[tuple(one.shape) for one in ours]} instead of {[tuple(one.shape) for one in theirs]}"
    for one, other in zip(ours, theirs, strict=True):
        if one.dtype is not other.dtype:
            return f"dtype {one.dtype} instead of {other.dtype}"
        error, allowed = _find_error(one, other), FACTOR * _find_rounding(other)
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
    """Sums in float32 and more are off by several roundings; results of a smaller dtype are rounded once."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    size, eps = float(tensor.detach().double().nan_to_num(0.0, 0.0, 0.0).abs().max()), torch.finfo(tensor.dtype).eps
    return size * min(16 * eps, max(eps, 16 * torch.finfo(torch.float32).eps))


def run_calls(model: nn.Module, calls: Calls, *, gradients: bool = False) -> Outputs:
    """A model may change copies of the arguments only, no buffer, and draws the same random numbers each time."""
    with _unchanged(model):
        return list(_run(model, copy_calls(calls), gradients=gradients))


def _run(model: Any, calls: Calls, *, gradients: bool) -> Iterator[list[Tensor]]:
    """Yield the outputs of each call, and gradients of the parameters."""
    with torch.set_grad_enabled(gradients):
        for args, kwargs in calls:
            outputs = list_tensors(model(*args, **kwargs))
            found = [*outputs, *(_find_gradients(model, outputs) if gradients else ())]
            yield [one.detach() for one in found]


def _find_gradients(model: nn.Module, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Of the sum of all outputs."""
    parameters = [one for one in model.parameters() if one.requires_grad]
    return find_gradients(outputs, parameters, torch.ones_like)


def find_gradients(
    outputs: Iterable[Tensor], sources: Sequence[Tensor], weigh: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """Return gradients of the weighted sum of all outputs, zeros where there are none."""
    roots = [one for one in outputs if one.requires_grad]
    if not roots or not sources:
        return [torch.zeros_like(one) for one in sources]
    return list(torch.autograd.grad(roots, sources, list(map(weigh, roots)), materialize_grads=True))


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    buffers = {value: value.clone() for value in model.buffers() if not value.is_inference()}
    with fork_random_numbers(model), torch.no_grad():
        torch.manual_seed(0)
        try:
            yield
        finally:
            for value, before in buffers.items():
                value.copy_(before)


def copy_calls(calls: Calls) -> Calls:
    """Return equal arguments."""
    return copy.deepcopy(list(calls))


@dataclass(frozen=True, slots=True)
class Expected:
    """Outputs of a model's calls, and how far each may be off by roundings of weights. `gradients`: backward, too."""

    model: nn.Module
    calls: Calls
    gradients: bool
    outputs: Outputs
    allowed: list[list[float]]

    def describe_difference(self, found: Outputs) -> str:
        for at, (ours, theirs, limits) in enumerate(zip(found, self.outputs, self.allowed, strict=True)):
            for one, other, allowed in zip(ours, theirs, limits, strict=True):
                error = _find_error(one, other) if one.shape == other.shape else float("inf")
                if not error <= allowed:
                    return f"call {at} of the model: off by {error:.3g}, allowed {allowed:.3g}"
        return ""


def expect(model: nn.Module, calls: Calls, *, gradients: bool = False) -> Expected:
    outputs = run_calls(model, calls, gradients=gradients)
    moved = copy.deepcopy(model)
    perturb([value.data for value in moved.parameters()], 0)
    nearby = run_calls(moved, calls, gradients=gradients)
    allowed = [
        [FACTOR * max(_find_error(*pair), _find_rounding(pair[1])) for pair in zip(near, own, strict=True)]
        for near, own in zip(nearby, outputs, strict=True)
    ]
    return Expected(model, calls, gradients, outputs, allowed)


def compare_models(dispatches: Sequence[Dispatch], expected: Expected) -> str:
    """Return how outputs and gradients with the kernels differ from the expected ones, or ""."""
    with applied(dispatches):
        return expected.describe_difference(run_calls(expected.model, expected.calls, gradients=expected.gradients))


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


def compare_tokens(expected: Expected, dispatches: Sequence[Dispatch], length: int) -> int | None:
    """Return the number of equal greedy tokens from the start, or None if the model is no language model. Another token
    counts as equal if the model scores it as its own one, within what may differ.
    """
    model, call = expected.model, expected.calls[0]
    given = find_tokens(expected)
    if given is None:
        return None
    limits = zip(expected.outputs[0], expected.allowed[0], strict=True)
    allowed = next(limit for one, limit in limits if _has_scores(one, given))  # of the output that `generate` reads
    steps = list(generate(model, call, given, length))
    with applied(dispatches):
        found = [_score_next(model, call, given, tokens).argmax(-1, keepdim=True) for tokens, _ in steps]
    equal = [
        bool((own.gather(-1, one) >= own.amax(-1, keepdim=True) - allowed).all())
        for (_, own), one in zip(steps, found, strict=True)
    ]
    return [*equal, False].index(False)


def find_tokens(expected: Expected) -> Tensor | None:
    """Return an integer input of two dimensions if an output has scores for each of its elements, or for the last."""
    given = [
        one for one in list_tensors(expected.calls[0]) if one.dim() == 2 and one.dtype in (torch.int32, torch.int64)
    ]
    return next((one for one in given if any(_has_scores(output, one) for output in expected.outputs[0])), None)


def _has_scores(output: Tensor, tokens: Tensor) -> bool:
    is_scores = output.dim() == 3 and output.shape[0] == tokens.shape[0] and output.is_floating_point()
    return is_scores and output.shape[1] in (1, tokens.shape[1])


def generate(model: nn.Module, call: Call, given: Tensor, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield tokens, and the scores of the next one. The most probable one then replaces the oldest one of `given`, an
    argument of the call: the shapes stay those that the kernels are for."""
    tokens = given
    for _ in range(length):
        scores = _score_next(model, call, given, tokens)
        yield tokens, scores
        tokens = torch.cat([tokens[:, 1:], scores.argmax(-1, keepdim=True).to(tokens.dtype)], dim=1)


def _score_next(model: nn.Module, call: Call, given: Tensor, tokens: Tensor) -> Tensor:
    (outputs,) = run_calls(model, [_replace(call, given, tokens)])
    return next(one for one in outputs if _has_scores(one, tokens))[:, -1]


def _replace(call: Call, given: Tensor, by: Tensor) -> Call:
    args, kwargs = map_tensors(call, lambda one: by if one is given else one)
    return args, kwargs


@dataclass(slots=True, eq=False)
class Runner:
    """`work` makes the calls and yields their outputs. Arguments are copied, and `dispatches` put into the model,
    outside of the time."""

    work: Callable[[Calls], Iterable[list[Tensor]]]
    calls: Calls = ()
    dispatches: Sequence[Dispatch] = ()

    def measure_us(self, clock: Callable[[], float]) -> float:
        with applied(self.dispatches):
            calls = copy_calls(self.calls)
            start_s = clock()
            for _ in self.work(calls):
                pass
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
    """Return a clock that waits for the work of the model's GPUs."""
    devices = list_gpus(model)

    def read_s() -> float:
        for device in devices:
            torch.cuda.synchronize(device)
        return time.perf_counter()

    return read_s


def make_runner(mode: str, dispatches: Sequence[Dispatch], expected: Expected) -> Runner:
    """Raises whatever torch raises if the model does not allow the mode."""
    model, calls, gradients = expected.model, expected.calls, expected.gradients
    if mode == "eager":
        return Runner(partial(_run, model, gradients=gradients), calls, dispatches)
    with applied(dispatches):
        if mode == "graph":
            return Runner(partial(_replay, *_record(model, copy_calls(calls), gradients=gradients)))
        compiled = torch.compile(copy_structure(model, dispatches))
    return Runner(partial(_run, compiled, gradients=gradients), calls)


def _record(model: nn.Module, calls: Calls, *, gradients: bool) -> tuple[torch.cuda.CUDAGraph, Calls, Outputs]:
    """Return a graph of the calls, with the arguments and outputs whose memory it uses. Calls in another stream load
    kernels and libraries before."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(list_gpus(model)[0]):
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            list(_run(model, copy_calls(calls), gradients=gradients))
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            outputs = list(_run(model, calls, gradients=gradients))
    return graph, calls, outputs


def _replay(graph: torch.cuda.CUDAGraph, arguments: Calls, outputs: Outputs, calls: Calls) -> Outputs:
    graph.replay()
    return outputs


def copy_structure(model: nn.Module, dispatches: Sequence[Dispatch]) -> nn.Module:
    """Copy modules, which share the parameters, buffers and kernels of the model: extensions cannot be copied."""
    shared = (*model.parameters(), *model.buffers(), *(one.kernel for one in dispatches))
    return copy.deepcopy(model, {id(value): value for value in shared})


def measure_mode(mode: str, dispatches: Sequence[Dispatch], expected: Expected) -> Gain | str:
    """Return the gain, or how the outputs with kernels are wrong in this mode."""
    model, calls = expected.model, expected.calls
    with _unchanged(model):
        before, after = (make_runner(mode, one, expected) for one in ((), dispatches))
        with applied(after.dispatches):
            difference = expected.describe_difference(list(after.work(copy_calls(calls))))
        if difference:
            return f"wrong outputs in {difference}"
        return measure_gain(before, after, len(calls), clock=choose_clock(model))


def measure_modes(dispatches: Sequence[Dispatch], expected: Expected, modes: Sequence[str]) -> dict[str, Gain | str]:
    """Map each mode to the gain, or to the reason why the model does not allow it."""
    found: dict[str, Gain | str] = {}
    for mode in modes:
        if mode == "graph" and len(list_gpus(expected.model)) != 1:
            found[mode] = "a CUDA graph needs a model on one GPU"
            continue
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module=r"torch\._dynamo")  # about extensions, and the user's code
                found[mode] = measure_mode(mode, dispatches, expected)
        except Exception as error:  # noqa: BLE001  # of torch's compiler, or of the model
            found[mode] = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
            with suppress(RuntimeError):
                choose_clock(expected.model)()
    return found
