"""Maps all device memory of a worker in the evaluator. The mapping outlives the worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from torch import Tensor

from harness.domain import DeviceError
from harness.protocol import device_memory
from harness.protocol.recorded_memory import FIRST_ADDRESS, RANGE_BYTES
from harness.sandbox.devices import Device
from harness.sandbox.gpu.worker_memory import Stretch, view_bytes

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
    try:
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
    except BaseException:
        for _, _, descriptor in pages:
            os.close(descriptor)
        raise
    return pages, True
