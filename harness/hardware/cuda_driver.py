"""Lists the GPUs that torch can use in this process, by NVIDIA's driver and without importing torch.

Numbers are torch's: `CUDA_VISIBLE_DEVICES` applies. No context is created. Source: CUDA driver API.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from harness.hardware.host import read_torch_build

# CUdevice_attribute
_MULTIPROCESSORS, _L2_BYTES = 16, 38
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_SHARED_BYTES_PER_MULTIPROCESSOR, _SHARED_BYTES_PER_BLOCK = 81, 97
_NAME_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProperties:
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    multiprocessors: int
    l2_bytes: int
    shared_bytes_per_multiprocessor: int
    shared_bytes_per_block: int

    @property
    def architecture(self) -> str:
        """Has the form of TORCH_CUDA_ARCH_LIST."""
        major, minor = self.capability
        return f"{major}.{minor}"


def list_gpus() -> tuple[GpuProperties, ...]:
    """Empty without a driver that runs torch's CUDA version."""
    driver = _open_driver()
    count = ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(_read_properties(driver, index) for index in range(count.value))


@cache
def _open_driver() -> ctypes.CDLL | None:
    """Return None if torch cannot use it; CUDA runs on drivers of the same major version or a later one."""
    cuda, version = read_torch_build().cuda, ctypes.c_int()
    if cuda is None:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return driver if version.value // 1000 >= int(cuda.partition(".")[0]) else None


def _read_properties(driver: ctypes.CDLL, index: int) -> GpuProperties:
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, _NAME_BYTES, device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def read(attribute: int) -> int:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        return value.value

    return GpuProperties(
        name=name.value.decode(),
        capability=(read(_CAPABILITY_MAJOR), read(_CAPABILITY_MINOR)),
        memory_bytes=memory.value,
        multiprocessors=read(_MULTIPROCESSORS),
        l2_bytes=read(_L2_BYTES),
        shared_bytes_per_multiprocessor=read(_SHARED_BYTES_PER_MULTIPROCESSOR),
        shared_bytes_per_block=read(_SHARED_BYTES_PER_BLOCK),
    )
