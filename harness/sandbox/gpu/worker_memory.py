"""A worker's device memory as the evaluator sees it: pages that the worker shares, mapped here, read without its help.

The worker says where its outputs lie; what lies there is read by the evaluator itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.domain import DeviceError
from harness.protocol import device_memory

MAX_RUNS = 64  # mapped at a time
MAPPING_S = 10.0  # for one output
Fetch = Callable[[int], list[tuple[int, int, int]]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Device memory, as it is mapped in this process for as long as `pages` lives; None: it is the arena's."""

    address: int
    size_bytes: int
    pages: device_memory.ImportedPages | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive bytes of the worker's address space, and where they are mapped here."""

    start: int
    end: int
    local: int
    pages: device_memory.ImportedPages | None

    def locate(self, address: int, size_bytes: int) -> Stretch | None:
        inside = self.start <= address and address + size_bytes <= self.end
        return Stretch(self.local + address - self.start, size_bytes, self.pages) if inside else None


class WorkerMemory:
    """Maps what is asked for, and remembers it. `fetch` gives pages from an address on, as `WorkerClient.export_pages`
    does. The arena, which the evaluator made, is there from the beginning."""

    def __init__(self, fetch: Fetch, *, device: int, arena_start: int, arena_local: int, arena_bytes: int) -> None:
        self._fetch = fetch
        self._device = device
        self._arena = _Run(arena_start, arena_start + arena_bytes, arena_local, None)
        self._runs: list[_Run] = []

    def locate(self, address: int, size_bytes: int) -> Stretch | None:
        """Where the worker's bytes are mapped here; None: they are not."""
        found = (run.locate(address, size_bytes) for run in (self._arena, *self._runs))
        return next((stretch for stretch in found if stretch is not None), None)

    def map(self, address: int, size_bytes: int) -> Stretch | None:
        """The same, mapping them first where they are not. None if they cannot be shared, or not within MAPPING_S."""
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
        """Addresses may stand for other memory now. What was found before stays mapped while it is held."""
        self._runs.clear()


def _follow(pages: list[tuple[int, int, int]], address: int) -> bool:
    """Whether the first page holds the address, and each of the others begins where the one before ends."""
    ends = [base + size for base, size, _ in pages]
    return pages[0][0] <= address < ends[0] and all(
        base == end for (base, _, _), end in zip(pages[1:], ends, strict=False)
    )
