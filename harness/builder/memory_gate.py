"""Limits concurrent builds by free memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.hardware.host import available_memory_bytes

PLAIN_BUILD_BYTES = 1_300_000_000  # peak: 2.2 GB for nvcc's front end with torch's headers, 1.5 GB for g++
FAST_BUILD_BYTES = 900_000_000
PREBUILT_BYTES = 2_500_000_000
GROWING_S = 20.0  # until then a build may not have reached its peak


class MemoryGate:
    """Thread-safe. One build may always run."""

    def __init__(
        self,
        read_available: Callable[[], int] = available_memory_bytes,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_available = read_available
        self._read_clock = read_clock
        self._changed = threading.Condition()
        self._running: list[tuple[float, int]] = []

    @contextmanager
    def hold(self, need_bytes: int) -> Iterator[None]:
        with self._changed:
            while not self._has_room(need_bytes):
                self._changed.wait(timeout=1.0)
            entry = (self._read_clock(), need_bytes)
            self._running.append(entry)
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(entry)
                self._changed.notify_all()

    def _has_room(self, need_bytes: int) -> bool:
        if not self._running:
            return True
        now = self._read_clock()
        growing = sum(size for began, size in self._running if now - began < GROWING_S)
        return self._read_available() >= need_bytes + growing
