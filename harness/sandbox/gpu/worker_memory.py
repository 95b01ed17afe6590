"""Maps a worker's device memory in the evaluator: parts of it, or all pages, which then outlive the worker."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.domain import DeviceError
from harness.protocol import TensorSpec, device_memory
from harness.protocol.descriptors import close_all, closing_on_error
from harness.protocol.device_memory import FIRST_ADDRESS, RANGE_BYTES
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
            if len(self._runs) >= MAX_RUNS:
                self.forget()
            mapped = device_memory.ImportedPages([(size, descriptor) for _, size, descriptor in pages], self._device)
            self._runs.append(_Run(pages[0][0], sum(pages[-1][:2]), mapped.address, mapped))
        except DeviceError:
            return None
        finally:
            close_all(descriptor for _, _, descriptor in pages)
        return self.locate(address, size_bytes)

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


PAGE_STEP = 64 << 10  # divides each size of pages of a device


def repeats_memory(memory: Tensor, step: int = PAGE_STEP) -> bool:
    """Return whether bytes have other addresses in the same `memory`, because pages are mapped more than once. Nothing
    may use it meanwhile.
    """
    count = (memory.numel() - 4) // step + 1
    if count < 2:
        return False
    places = memory.as_strided((count, 4), (step, 1), memory.storage_offset())
    kept = places.clone()
    marks = torch.arange(count, dtype=torch.int32, device=memory.device).view(torch.uint8).view(count, 4)
    places.copy_(marks)
    found = not torch.equal(places, marks)
    places.copy_(kept)
    return found


Page = tuple[int, int, int]  # first address in the worker, size in bytes, descriptor


class WorkerPages:
    """Closes the descriptors of the pages. Raises DeviceError if they cannot be mapped."""

    def __init__(self, pages: Iterable[Page], device: Device) -> None:
        self.pages = list(pages)
        self._device = device
        try:
            self._range = device_memory.AddressRange(RANGE_BYTES, device.torch_device.index or 0)
        except DeviceError:
            self._close_descriptors()
            raise
        try:
            for address, size, descriptor in self.pages:
                self._range.map(descriptor, address - FIRST_ADDRESS, size)
        except DeviceError:
            self.close()
            raise

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size, _ in self.pages)

    def translate(self, address: int) -> int:
        return self._range.address + address - FIRST_ADDRESS

    def contains(self, address: int, size_bytes: int) -> bool:
        end = address + size_bytes
        for start, size, _ in sorted(self.pages):
            if start <= address < start + size:
                address = start + size
        return address >= end

    def view(self, address: int, size_bytes: int) -> Tensor:
        return view_bytes(Stretch(self.translate(address), size_bytes), self._device)

    def close(self) -> None:
        self._range.close()
        self._close_descriptors()

    def _close_descriptors(self) -> None:
        while self.pages:
            os.close(self.pages.pop()[2])


def export_pages(addresses: Iterable[int], fetch: Callable[[int], list[Page]], shared: Page) -> tuple[list[Page], bool]:
    pages, covered = [shared], 0
    start, end = shared[0], shared[0] + shared[1]
    with closing_on_error(descriptor for _, _, descriptor in pages):
        for address in sorted(addresses):
            if start <= address < end or address < covered:
                continue
            found = fetch(address)
            if not found:
                return pages, False
            covered = sum(found[-1][:2])
            for page in found:
                if start <= page[0] < end:
                    os.close(page[2])
                else:
                    pages.append(page)
    return pages, True
