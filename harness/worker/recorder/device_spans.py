"""Refuses operations of a recording that reach beyond the recorded program's device memory: the worker that wrote it
may be hostile, and the driver would copy to and from memory of the replaying process. Layouts: cuda.h of CUDA 13.
"""

import struct
from collections.abc import Iterable

from harness.protocol.device_memory import FIRST_ADDRESS, RANGE_BYTES
from harness.worker.recorder.driver_calls import DriverError

_ON_DEVICE = (2, 4)  # CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED
# Each side: x, y, (z, detail,) kind of memory, host pointer, device pointer, array, (reserved,) pitch(, height)
_COPY_2D, _COPY_3D = struct.Struct("=" + 2 * "QQi4xQQQQ" + "QQ"), struct.Struct("=" + 2 * "QQQQi4xQQQQQQ" + "QQQ")
# CUlaunchAttributeID: all but those whose values are handles of the process that made them.
_PORTABLE_ATTRIBUTES = frozenset({1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 14, 16})


class DeviceSpans:
    def __init__(self, more: Iterable[tuple[int, int]]) -> None:
        """`more` are places (address, bytes) beside the program's range of addresses."""
        self._spans = [(FIRST_ADDRESS, FIRST_ADDRESS + RANGE_BYTES), *((start, start + size) for start, size in more)]

    def require(self, address: int, size_bytes: int) -> None:
        """Raises DriverError."""
        end = address + size_bytes
        if size_bytes < 0 or not any(start <= address and end <= stop for start, stop in self._spans):
            raise DriverError("an operation reaches beyond the program's device memory")

    def require_rows(self, address: int, pitch: int, width_bytes: int, rows: int) -> None:
        self.require(address, pitch * max(rows - 1, 0) + width_bytes)

    def require_copy2d(self, packed: bytes) -> bytes:
        *sides, width, rows = _unpack(_COPY_2D, packed)
        for x, y, kind, _, address, _, pitch in (sides[:7], sides[7:]):
            _require_kind(kind)
            self.require_rows(address + y * pitch + x, pitch, width, rows)
        return packed

    def require_copy3d(self, packed: bytes) -> bytes:
        *sides, width, rows, layers = _unpack(_COPY_3D, packed)
        for x, y, z, _, kind, _, address, _, _, pitch, height in (sides[:11], sides[11:]):
            _require_kind(kind)
            first = address + (z * height + y) * pitch + x
            self.require_rows(first, pitch, width, height * max(layers - 1, 0) + rows)
        return packed


def require_portable(attribute: int) -> None:
    """Raises DriverError for a launch attribute that holds a handle."""
    if attribute not in _PORTABLE_ATTRIBUTES:
        raise DriverError(f"launch attribute {attribute} cannot be replayed")


def _unpack(layout: struct.Struct, packed: bytes) -> tuple[int, ...]:
    if len(packed) != layout.size:
        raise DriverError("a copy of an unknown form")
    return layout.unpack(packed)


def _require_kind(kind: int) -> None:
    if kind not in _ON_DEVICE:
        raise DriverError("a copy to or from memory that is not the device's")
