"""Loads the recorded code images, and their kernels."""

import ctypes
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.worker.recorder.driver_calls import Driver, DriverError

_DYNAMIC_SHARED, _CARVEOUT, _NON_PORTABLE_CLUSTER = 8, 9, 14


class Images:
    def __init__(self, driver: Driver, images: Mapping[str, Any], blob: bytes) -> None:
        self._driver, self._images, self._blob = driver, images, blob
        self._libraries: dict[int, int] = {}
        self._kept: list[Any] = []

    def load(self, image: int) -> int:
        if image not in self._libraries:
            facts = self._images[str(image)]
            data = self._read(facts)
            buffer = ctypes.create_string_buffer(data, len(data) + 1)
            self._kept.append(buffer)
            self._libraries[image] = self._driver.pointer("cuLibraryLoadData", buffer, None, None, 0, None, None, 0)
        return self._libraries[image]

    def close(self) -> None:
        for library in self._libraries.values():
            self._driver.cuLibraryUnload(ctypes.c_void_p(library))

    def _read(self, facts: Mapping[str, Any]) -> bytes:
        start, size = facts["offset"], facts["size"]
        if not facts["path"]:
            return self._blob[start : start + size]
        with Path(facts["path"]).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return mapped[start : start + size]


class Function:
    def __init__(self, driver: Driver, images: Images, facts: Mapping[str, Any]) -> None:
        if facts["image"] < 0:
            raise DriverError(f"the code of {facts['name'] or 'a kernel'} was not seen")
        kernel = driver.pointer(
            "cuLibraryGetKernel", ctypes.c_void_p(images.load(facts["image"])), facts["name"].encode()
        )
        self.handle = driver.pointer("cuKernelGetFunction", ctypes.c_void_p(kernel))
        self._parameters = facts["parameters"]
        if any(offset < 0 or size < 0 for offset, size in self._parameters):
            raise DriverError("an invalid argument of a kernel")
        self._bytes = max((offset + size for offset, size in self._parameters), default=0)
        for kind, value in (
            (_DYNAMIC_SHARED, facts["dynamic_shared"]),
            (_CARVEOUT, facts["carveout"]),
            (_NON_PORTABLE_CLUSTER, facts["non_portable_cluster"]),
        ):
            if value > 0:
                driver.cuFuncSetAttribute(ctypes.c_void_p(self.handle), kind, value)

    def place(self, packed: str) -> tuple[Any, Any]:
        if len(packed) // 2 < self._bytes:
            raise DriverError("arguments of a kernel are missing")
        data = ctypes.create_string_buffer(bytes.fromhex(packed), max(1, len(packed) // 2))
        start = ctypes.addressof(data)
        return (ctypes.c_void_p * max(1, len(self._parameters)))(
            *(start + offset for offset, _ in self._parameters)
        ), data
