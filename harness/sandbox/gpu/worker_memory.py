"""Maps a worker's device memory in the evaluator."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.domain import DeviceError
from harness.protocol import TensorSpec, device_memory
from harness.sandbox.devices import Device

MAX_RUNS = 64  # mapped at once
MAPPING_S = 10.0  # for one output
Fetch = Callable[[int], list[tuple[int, int, int]]]


@dataclass(frozen=True, slots=True)
class Stretch:
    address: int
    size_bytes: int
    pages: device_memory.ImportedPages | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    start: int
    end: int
    local: int
    pages: device_memory.ImportedPages | None

    def locate(self, address: int, size_bytes: int) -> Stretch | None:
        inside = self.start <= address and address + size_bytes <= self.end
        return Stretch(self.local + address - self.start, size_bytes, self.pages) if inside else None


class WorkerMemory:
    def __init__(self, fetch: Fetch, *, device: int, arena_start: int, arena_local: int, arena_bytes: int) -> None:
        self._fetch = fetch
        self._device = device
        self._arena = _Run(arena_start, arena_start + arena_bytes, arena_local, None)
        self._runs: list[_Run] = []

    def locate(self, address: int, size_bytes: int) -> Stretch | None:
        found = (run.locate(address, size_bytes) for run in (self._arena, *self._runs))
        return next((stretch for stretch in found if stretch is not None), None)

    def map(self, address: int, size_bytes: int) -> Stretch | None:
        known = self.locate(address, size_bytes)
        if known is not None:
            return known
        pages: list[tuple[int, int, int]] = []
        deadline_s = time.monotonic() + MAPPING_S
        try:
            while not pages or sum(pages[-1][:2]) < address + size_bytes:
                if time.monotonic() > deadline_s:
                    return None
                more = self._fetch(address if not pages else sum(pages[-1][:2]))
                pages += more
                if not more or not _follow(pages, address):
                    return None
            self._remember(pages)
        except DeviceError:
            return None
        finally:
            for _, _, descriptor in pages:
                os.close(descriptor)
        return self.locate(address, size_bytes)

    def _remember(self, pages: list[tuple[int, int, int]]) -> None:
        if len(self._runs) >= MAX_RUNS:
            self.forget()
        mapped = device_memory.ImportedPages([(size, descriptor) for _, size, descriptor in pages], self._device)
        self._runs.append(_Run(pages[0][0], sum(pages[-1][:2]), mapped.address, mapped))

    def forget(self) -> None:
        """Drop mappings of remapped addresses. Existing stretches stay valid."""
        self._runs.clear()


def _follow(pages: list[tuple[int, int, int]], address: int) -> bool:
    ends = [base + size for base, size, _ in pages]
    return pages[0][0] <= address < ends[0] and all(
        base == end for (base, _, _), end in zip(pages[1:], ends, strict=False)
    )


def view_outputs(stretches: Sequence[Stretch], specs: Sequence[TensorSpec], device: Device) -> Iterator[Tensor]:
    for stretch, spec in zip(stretches, specs, strict=True):
        yield view_bytes(stretch, device).view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.stride)


def view_bytes(stretch: Stretch, device: Device) -> Tensor:
    if stretch.size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8, device=device.torch_device)
    holder = device_memory.DeviceBytes(stretch.address, stretch.size_bytes)
    return torch.as_tensor(holder, device=device.torch_device)
