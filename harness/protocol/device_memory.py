"""GPU memory shared between processes by file descriptor; CUDA IPC handles do not cross PID namespaces.

Needs a current primary context. Functions raise DeviceError if a driver call fails. Source: CUDA driver API, "Virtual
Memory Management".
"""

import ctypes
import os
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from harness.domain import DeviceError

FIRST_ADDRESS, RANGE_BYTES = 0x600000000000, 1 << 42
MOST_RECORDING_BYTES = 128 << 20  # of JSON
NO_FUNCTION = -1  # in place of a recorded function: copies and fills

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
    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def allocate_shareable(size_bytes: int, device: int) -> tuple[int, int, int]:
    """Return (address, descriptor, size rounded up to the granularity)."""
    granularity = ctypes.c_size_t()
    _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(_properties(device)), 0)
    rounded = -(-size_bytes // granularity.value) * granularity.value
    handle, descriptor = _create(rounded, device)
    return _map(handle, rounded, device), descriptor, rounded


def map_descriptor(descriptor: int, size_bytes: int, device: int) -> int:
    """Return the local address of another process's memory."""
    return _map(_import_handle(descriptor), size_bytes, device)


def export_page(address: int) -> tuple[int, int, int]:
    """Return the allocation around `address`: (first address, bytes, descriptor). Fails for cudaMalloc's memory."""
    handle = ctypes.c_ulonglong()
    _call("cuMemRetainAllocationHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    try:
        base, size, descriptor = ctypes.c_ulonglong(), ctypes.c_size_t(), ctypes.c_int()
        _call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_ulonglong(address))
        none = ctypes.c_ulonglong(0)
        _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _POSIX_DESCRIPTOR, none)
    finally:
        _call("cuMemRelease", handle)
    return int(base.value), int(size.value), descriptor.value


class AddressRange:
    def __init__(self, size_bytes: int, device: int) -> None:
        self._device = device
        self._mapped: list[tuple[int, int]] = []
        self.address = _reserve(size_bytes)
        self._release = weakref.finalize(self, _unmap, self.address, size_bytes, self._mapped)

    def map(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Map another process's memory. Raises DeviceError if it is not on the device."""
        handle, found = _import_handle(descriptor), _AllocationProperties()
        try:
            _call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(found), handle)
            if (found.location.type, found.location.id) != (_DEVICE_LOCATION, self._device):
                raise DeviceError("another process shared memory that is not on the device")
        except DeviceError:
            _call("cuMemRelease", handle)
            raise
        self._map(handle, offset, size_bytes)

    def close(self) -> None:
        self._release()

    def _map(self, handle: Any, offset: int, size_bytes: int) -> None:
        where, size = ctypes.c_ulonglong(self.address + offset), ctypes.c_size_t(size_bytes)
        try:
            _call("cuMemMap", where, size, ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
        finally:
            _call("cuMemRelease", handle)
        self._mapped.append((where.value, size_bytes))
        _allow_access(where.value, size_bytes, self._device)


class ImportedPages:
    """Maps pages of another process contiguously and read-only.

    `pages` are (size in bytes, descriptor); the caller closes the descriptors.
    """

    def __init__(self, pages: Sequence[tuple[int, int]], device: int) -> None:
        self._range = AddressRange(sum(size for size, _ in pages), device)
        self.address, offset = self._range.address, 0
        for size, descriptor in pages:
            self._range.map(descriptor, offset, size)
            offset += size


def _unmap(address: int, size_bytes: int, mapped: list[tuple[int, int]]) -> None:
    for start, length in mapped:
        _call("cuMemUnmap", ctypes.c_ulonglong(start), ctypes.c_size_t(length))
    _call("cuMemAddressFree", ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes))


def pin(address: int, size_bytes: int) -> bool:
    """Let the copy engine access host memory directly. Return False if the driver refuses, as for lack of memory."""
    return not _load_driver().cuMemHostRegister_v2(ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), 0)


def reset_persisting_cache() -> None:
    status = _load_driver().cuCtxResetPersistingL2Cache()
    if status not in (0, _NOT_SUPPORTED):
        raise DeviceError(f"cuCtxResetPersistingL2Cache failed with {status}")


def free(address: int, size_bytes: int, descriptor: int) -> None:
    """The memory stays allocated while another process maps it."""
    _call("cuMemUnmap", ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes))
    _call("cuMemAddressFree", ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes))
    os.close(descriptor)


def _create(size_bytes: int, device: int) -> tuple[Any, int]:
    handle, descriptor, none = ctypes.c_ulonglong(), ctypes.c_int(), ctypes.c_ulonglong(0)
    properties = _properties(device)
    _call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size_bytes), ctypes.byref(properties), none)
    _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _POSIX_DESCRIPTOR, none)
    return handle, descriptor.value


def _import_handle(descriptor: int) -> Any:
    handle = ctypes.c_ulonglong()
    kind = ctypes.c_int(_POSIX_DESCRIPTOR)
    _call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor), kind)
    return handle


def _map(handle: Any, size_bytes: int, device: int) -> int:
    address = _reserve(size_bytes)
    where, size = ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes)
    _call("cuMemMap", where, size, ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
    _call("cuMemRelease", handle)  # the mapping and exported descriptors keep it alive
    _allow_access(address, size_bytes, device)
    return address


def _reserve(size_bytes: int) -> int:
    address, none = ctypes.c_ulonglong(), ctypes.c_ulonglong(0)
    _call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size_bytes), ctypes.c_size_t(0), none, none)
    return int(address.value)


def _allow_access(address: int, size_bytes: int, device: int) -> None:
    access = _AccessDescription(location=_Location(type=_DEVICE_LOCATION, id=device), flags=_READ_WRITE)
    where, size = ctypes.c_ulonglong(address), ctypes.c_size_t(size_bytes)
    _call("cuMemSetAccess", where, size, ctypes.byref(access), ctypes.c_size_t(1))


def _properties(device: int) -> _AllocationProperties:
    location = _Location(type=_DEVICE_LOCATION, id=device)
    return _AllocationProperties(type=_PINNED, handle_types=_POSIX_DESCRIPTOR, location=location)


@cache
def _load_driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError("the NVIDIA driver library libcuda.so.1 is not installed") from error


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_load_driver(), name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        _load_driver().cuGetErrorString(status, ctypes.byref(text))
        raise DeviceError(f"{name} failed with {status}: {(text.value or b'unknown error').decode()}")
