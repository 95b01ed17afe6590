"""Reads Xid errors, GPU faults that NVIDIA's driver reports, from NVML's events."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

# Caused by programs, after which the GPU is sound: exceptions of the graphics engine and the video processor, page
# faults, stopped and cleaned up channels, timeouts of context switches. As in NVIDIA's Kubernetes device plugin.
CAUSED_BY_PROGRAMS = (13, 31, 43, 45, 68, 109)


class XidWatch:
    """`handle` is the GPU's in `nvml`. Sees nothing if the driver has no such events."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._events: Any = None
        with suppress(nvml.NVMLError):
            self._events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)

    def find_fault(self) -> str:
        """Return the error since the last call that no program can cause, or ""."""
        with suppress(self._nvml.NVMLError):  # a timeout, once there are no more events
            while True:
                number = self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData
                if number not in CAUSED_BY_PROGRAMS:
                    return f"Xid {number}, a fault of the GPU or its driver"
        return ""
