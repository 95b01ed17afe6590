"""CUDA graphs of the reference's calls: most of a call with thousands of short kernels is the time to launch them."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from harness.tensors.outputs import FlatOutputs, flatten_outputs
from harness.tensors.values import has_same_bits, list_tensors, map_tensors

LEAST_CALL_S = 0.03
LAUNCH_SHARE = 0.7  # of a call's time, until its last kernel is launched
CHECKED_CALLS = 2  # of a graph, whose outputs are compared with those of the call itself


@dataclass(slots=True)
class _Graph:
    """`given` are the memory of inputs, weights and buffers that the graph reads."""

    graph: torch.cuda.CUDAGraph
    given: list[Tensor]
    outputs: FlatOutputs
    checked: int = 0

    def replay(self, given: Sequence[Tensor]) -> FlatOutputs:
        for mine, theirs in zip(self.given, given, strict=True):
            mine.copy_(theirs)
        self.graph.replay()
        return replace(self.outputs, tensors=tuple(tensor.clone() for tensor in self.outputs.tensors))


def call_model(model: nn.Module, inputs: Sequence[Any], graphs: CallGraphs | None = None) -> FlatOutputs:
    """Raises WireError for outputs other than dense tensors in tuples, lists and dicts, and what the model raises."""
    return flatten_outputs(model(*inputs)) if graphs is None else graphs.call(model, inputs)


class CallGraphs:
    """Replays calls of a reference, also of its copies with other weights or in float64, whose time is spent on
    launches. The reference must change neither inputs nor state, draw no random numbers and return no views.
    """

    def __init__(self) -> None:
        self._graphs: dict[Hashable, _Graph | None] = {}

    def call(self, model: nn.Module, inputs: Sequence[Any]) -> FlatOutputs:
        given = _list_given(model, inputs)
        form = tuple((tensor.dtype, tensor.device, tensor.shape, tensor.stride()) for tensor in given)
        if form not in self._graphs:
            outputs, is_suitable = _watch(model, inputs)
            self._graphs[form] = _capture(model, inputs) if is_suitable else None
            graph = self._graphs[form]
        else:
            graph = self._graphs[form]
            if graph is not None and graph.checked == CHECKED_CALLS:
                return graph.replay(given)
            outputs = call_model(model, inputs)
        if graph is not None:
            graph.checked += 1
            pairs = zip(graph.replay(given).tensors, outputs.tensors, strict=True)
            self._graphs[form] = graph if all(has_same_bits(*pair) for pair in pairs) else None
        return outputs

    def clear(self) -> None:
        self._graphs.clear()


def _list_given(model: nn.Module, inputs: Sequence[Any]) -> list[Tensor]:
    return [tensor.detach() for tensor in chain(list_tensors(inputs), model.parameters(), model.buffers())]


def _watch(model: nn.Module, inputs: Sequence[Any]) -> tuple[FlatOutputs, bool]:
    """Return the outputs, and whether launches take most of the call's time and nothing waits for the device, which a
    graph cannot hold.
    """
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            began_s = time.perf_counter()
            outputs = call_model(model, inputs)
            launched_s = time.perf_counter() - began_s
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    call_s = time.perf_counter() - began_s
    waits = any("synchronizing CUDA operation" in str(one.message) for one in seen)
    return outputs, not waits and call_s > LEAST_CALL_S and launched_s > LAUNCH_SHARE * call_s


def _capture(model: nn.Module, inputs: Sequence[Any]) -> _Graph | None:
    copied, used = copy.deepcopy(model), map_tensors(tuple(inputs), lambda tensor: tensor.detach().clone())
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    capture = torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local")
    with _restored_after_failure(pool) as failures, capture:
        outputs = call_model(copied, used)
    return None if failures else _Graph(graph=graph, given=_list_given(copied, used), outputs=outputs)


@contextmanager
def _restored_after_failure(pool: Any) -> Iterator[list[Exception]]:
    """A capture that fails leaves stream, generator and allocator as during a capture."""
    device = torch.cuda.current_device()
    generator, failures = torch.cuda.default_generators[device], list[Exception]()
    state = generator.clone_state()
    with torch.cuda.stream(torch.cuda.current_stream()):
        try:
            yield failures
        except Exception as error:  # noqa: BLE001 - user code, which may do anything that a capture does not permit
            failures.append(error)
    if failures:
        generator.graphsafe_set_state(state)
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)
