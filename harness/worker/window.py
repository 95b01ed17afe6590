"""The worker's side of a GPU call through a `Doorbell`."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.domain import DeviceError
from harness.protocol import Doorbell, Signal, device_memory
from harness.protocol.channel import MAX_DESCRIPTORS
from harness.worker.memory import HeldState, flatten_outputs, resolve_views

HOLD_CYCLES = 100_000_000  # 50 ms at 2 GHz: longer than most calls, and than HELD_US
STREAMS_PER_PRIORITY = 32  # in torch's pool, which hands them out in turn


@dataclass(frozen=True, slots=True)
class WindowCall:
    reported_ns: int
    tree: dict[str, Any]
    tensors: list[Tensor]
    state: list[Tensor]


class Window:
    def __init__(self, descriptor: int, device: torch.device) -> None:
        self._bell = Doorbell(descriptor)
        os.close(descriptor)
        self._touched = torch.ones(1, device=device)

    def await_call(
        self,
        forward: Callable[..., Any],
        place_inputs: Callable[[int, int], tuple[Sequence[Any], list[list[Tensor]]]],
        state: HeldState,
    ) -> WindowCall | None:
        """Make the call; return None on REST. `place_inputs` takes the shift in bytes and the seed sent with the
        signal.

        WAKE also builds the tensors, so that this code is in the caches when the call is timed.
        """
        synchronize = torch._C._cuda_synchronize
        while (signal := self._bell.await_signal()) is Signal.WAKE:
            self._touched.add_(1.0)
            place_inputs(self._bell.read_shift(), self._bell.read_seed())
            synchronize()
            self._bell.answer()
        if signal is Signal.REST:
            self._bell.answer()
            return None
        inputs, given = place_inputs(self._bell.read_shift(), self._bell.read_seed())
        if given:
            state.load(given)
            synchronize()
        if signal is Signal.GO_AHEAD_OF_STREAMS:
            hold_other_streams()
            synchronize = self._synchronize_stream
        began_ns = time.perf_counter_ns()
        tree, tensors = flatten_outputs(forward(*inputs))
        if any(tensor.is_conj() or tensor.is_neg() for tensor in tensors):
            tensors = resolve_views(tensors)
        synchronize()
        addresses = [address_of(tensor) for tensor in tensors]
        reported_ns = time.perf_counter_ns() - began_ns
        left = state.copy()
        if left:
            synchronize()
            addresses += [address_of(tensor) for tensor in left]
        self._bell.answer_call(addresses)
        return WindowCall(reported_ns, tree, tensors, left)

    def _synchronize_stream(self) -> None:
        """Wait like a later operation: a kernel on the default stream waits for streams that block it."""
        self._touched.add_(1.0)
        torch.cuda.current_stream().synchronize()


def hold_other_streams() -> None:
    """Make work on all streams that torch provides wait behind a kernel that takes HOLD_CYCLES."""
    lowest, highest = torch.cuda.Stream.priority_range()  # type: ignore[call-arg]
    streams = [
        torch.cuda.Stream(priority=priority)  # type: ignore[no-untyped-call]
        for priority in range(highest, lowest + 1)
        for _ in range(STREAMS_PER_PRIORITY)
    ]
    with torch.cuda.stream(streams[0]):
        torch.cuda._sleep(HOLD_CYCLES)  # type: ignore[no-untyped-call]
    held = streams[0].record_event()
    for stream in streams[1:]:
        stream.wait_event(held)


def address_of(tensor: Tensor) -> int:
    """Return 0 for layouts without an address."""
    return tensor.data_ptr() if tensor.layout is torch.strided else 0


def export_pages(address: int) -> list[tuple[int, int, int]]:
    """Return at most as many pages as a message carries: (address, bytes, descriptor). Empty if the memory cannot be
    shared.
    """
    pages: list[tuple[int, int, int]] = []
    while len(pages) < MAX_DESCRIPTORS:
        try:
            pages.append(device_memory.export_page(address))
        except DeviceError:
            break
        address = pages[-1][0] + pages[-1][1]
    return pages


def count_released_bytes(device: torch.device) -> int:
    """If it grows, addresses may have been reused. Without the forwarding driver library it counts only
    torch's memory.
    """
    count = getattr(ctypes.CDLL("libcuda.so.1"), "harness_unmapped_bytes", None)
    if count is None:
        return int(torch.cuda.memory_stats(device).get("reserved_bytes.all.freed", 0))
    count.restype = ctypes.c_ulonglong
    return int(count())
