"""GPU memory shared between two processes through a file descriptor, by the CUDA driver's virtual memory calls.

The older inter-process handles do not cross process namespaces, and workers live in their own; a descriptor does.
Source: CUDA driver API, "Virtual Memory Management" (cuMemCreate, cuMemExportToShareableHandle, ...).
ctypes only; the caller has made the device's primary context current (any torch call on the device does).
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from harness.domain import DeviceError

_PINNED, _DEVICE_LOCATION, _POSIX_DESCRIPTOR, _READ_WRITE = 1, 1, 1, 3
_NOT_SUPPORTED = 801


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _AllocationFlags(ctypes.Structure):
    _fields_ = (
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class _AllocationProperties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows_metadata", ctypes.c_void_p),
        ("flags", _AllocationFlags),
    )


class _AccessDescription(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DeviceBytes:
    """Raw device memory as an object that torch reads through `__cuda_array_interface__` (version 3)."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def allocate_shareable(size_bytes: int, device: int) -> tuple[int, int, int]:
    """New device memory: (address here, descriptor for another process, size rounded up to the granularity)."""
    properties = _properties(device)
    granularity = ctypes.c_size_t()
    _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
    rounded = -(-size_bytes // granularity.value) * granularity.value
    handle, none = ctypes.c_ulonglong(), ctypes.c_ulonglong(0)
    _call(
        "cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(rounded), ctypes.byref(properties), ctypes.c_ulonglong(0)
    )
    descriptor = ctypes.c_int()
    _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _POSIX_DESCRIPTOR, none)
    return _map(handle, rounded, device), descriptor.value, rounded


def map_descriptor(descriptor: int, size_bytes: int, device: int) -> int:
    """The address at which another process's memory lies here."""
    handle = ctypes.c_ulonglong()
    _call(
        "cuMemImportFromShareableHandle",
        ctypes.byref(handle),
        ctypes.c_void_p(descriptor),
        ctypes.c_int(_POSIX_DESCRIPTOR),
    )
    return _map(handle, size_bytes, device)


def reset_persisting_cache() -> None:
    """Lines of the L2 cache that were set to persist become ordinary ones. A GPU that has none of these is left."""
    status = _load_driver().cuCtxResetPersistingL2Cache()
    if status not in (0, _NOT_SUPPORTED):
        raise DeviceError(f"cuCtxResetPersistingL2Cache failed with {status}")


def free(address: int, size_bytes: int, descriptor: int) -> None:
    """Gives back what `allocate_shareable` returned; the memory lives on while another process maps it."""
    _call("cuMemUnmap", ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes))
    _call("cuMemAddressFree", ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes))
    os.close(descriptor)


def _map(handle: Any, size_bytes: int, device: int) -> int:
    address = ctypes.c_ulonglong()
    size = ctypes.c_size_t(size_bytes)
    none = ctypes.c_ulonglong(0)
    _call("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), none, none)
    _call("cuMemMap", address, size, ctypes.c_size_t(0), handle, none)
    _call("cuMemRelease", handle)  # the mapping and exported descriptors keep it alive
    access = _AccessDescription(location=_Location(type=_DEVICE_LOCATION, id=device), flags=_READ_WRITE)
    _call("cuMemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
    return int(address.value)


def _properties(device: int) -> _AllocationProperties:
    location = _Location(type=_DEVICE_LOCATION, id=device)
    return _AllocationProperties(type=_PINNED, handle_types=_POSIX_DESCRIPTOR, location=location)


def _load_driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError("the NVIDIA driver library libcuda.so.1 is not installed") from error


def _call(name: str, *arguments: Any) -> None:
    driver = _load_driver()
    status = getattr(driver, name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        raise DeviceError(f"{name} failed with {status}: {(text.value or b'unknown error').decode()}")
