"""The CUDA driver functions that recording and replaying need, by ctypes. Source: cuda.h of CUDA 13.

A forwarding driver library (folder `driver`) that replaces libcuda.so.1 records the GPU work of one call as data.
"""

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

from harness.protocol.descriptors import close_all, closing_on_error
from harness.protocol.device_memory import FIRST_ADDRESS, RANGE_BYTES

_DEVICE, _POSIX_DESCRIPTOR, _READ_WRITE = 1, 1, 3


class DriverError(Exception):
    pass


class LaunchConfig(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class LaunchAttribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_ubyte * 64))


class NodeParameters(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class SetParameters(ctypes.Structure):
    _fields_ = (
        ("target", ctypes.c_ulonglong),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("element_size", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class EdgeData(ctypes.Structure):
    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location_type", ctypes.c_int), ("location_id", ctypes.c_int), ("flags", ctypes.c_int))


class Driver:
    """Calls the real driver's functions by name. Raises DriverError for a status other than 0."""

    def __init__(self) -> None:
        """Raises DriverError in a process without the forwarding library."""
        library = ctypes.CDLL("libcuda.so.1")
        if not hasattr(library, "harness_real"):
            raise DriverError("the forwarding driver library is not loaded")
        self._find = library.harness_real
        self._find.restype = ctypes.c_void_p

    def __getattr__(self, name: str) -> Callable[..., None]:
        address = self._find(name.encode())
        if not address:
            raise DriverError(f"the driver has no function {name}")
        function = ctypes.CFUNCTYPE(ctypes.c_int)(address)

        def call(*arguments: Any) -> None:
            status = function(*arguments)
            if status:
                raise DriverError(f"{name} failed with {self._name_error(status)}")

        setattr(self, name, call)
        return call

    def _name_error(self, status: int) -> str:
        text = ctypes.c_char_p()
        ctypes.CFUNCTYPE(ctypes.c_int)(self._find(b"cuGetErrorName"))(status, ctypes.byref(text))
        return (text.value or b"an unknown error").decode()

    def pointer(self, name: str, *arguments: Any) -> int:
        """Return the handle that a call stores in its first argument; 0 is a valid handle."""
        out = ctypes.c_void_p()
        getattr(self, name)(ctypes.byref(out), *arguments)
        return out.value or 0


def open_device(driver: Driver, index: int) -> None:
    """Open the context and reserve the addresses before anything else can take them."""
    driver.cuInit(0)
    device, none = ctypes.c_int(), ctypes.c_ulonglong(0)
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuCtxSetCurrent(ctypes.c_void_p(driver.pointer("cuDevicePrimaryCtxRetain", device)))
    start, wanted, size = ctypes.c_ulonglong(), ctypes.c_ulonglong(FIRST_ADDRESS), ctypes.c_size_t(RANGE_BYTES)
    driver.cuMemAddressReserve(ctypes.byref(start), size, ctypes.c_size_t(0), wanted, none)
    if start.value != FIRST_ADDRESS:
        raise DriverError(f"the driver reserved {start.value:#x} instead of {FIRST_ADDRESS:#x}")


def unmap_page(driver: Driver, address: int, size: int) -> None:
    driver.cuMemUnmap(ctypes.c_ulonglong(address), ctypes.c_size_t(size))


def map_page(driver: Driver, descriptor: int, address: int, size: int, device: int) -> None:
    handle = ctypes.c_ulonglong()
    driver.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(descriptor), _POSIX_DESCRIPTOR)
    where = ctypes.c_ulonglong(address)
    driver.cuMemMap(where, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
    driver.cuMemRelease(handle)
    access = _Access(_DEVICE, device, _READ_WRITE)
    driver.cuMemSetAccess(where, ctypes.c_size_t(size), ctypes.byref(access), ctypes.c_size_t(1))


def await_all_nodes(driver: Driver, graph: ctypes.c_void_p) -> None:
    """A graph ends with its last nodes. With programmatic launches these need not wait for the ones before them."""
    count, node = ctypes.c_size_t(), ctypes.c_void_p()
    driver.cuGraphGetNodes(graph, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * max(count.value, 1))()
    driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count))
    driver.cuGraphAddEmptyNode(ctypes.byref(node), graph, nodes, count)


def instantiate(driver: Driver, graph: ctypes.c_void_p) -> int:
    executable = driver.pointer("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
    driver.cuGraphUpload(ctypes.c_void_p(executable), None)
    return executable


MOST_RECORDINGS = 6  # until two in a row have the same shape: the first ones may hold autotuning


class NotRecordable(Exception):
    """The message is the reason."""


class CallRecorder:
    def __init__(self, private_folder: str) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._private = private_folder.encode()
        if not hasattr(self._library, "harness_begin_recording"):
            raise NotRecordable("the forwarding driver library is not loaded in the worker")

    def record(self, reset: Callable[[], None], call: Callable[[], Any]) -> tuple[Any, dict[str, Any], list[int]]:
        """Return the last call's result, its recording, and descriptors of the recording's JSON and bytes. `reset`
        precedes each call and is not recorded. If calls do not become steady, that is unsupported, too.
        """
        before: list[Any] | None = None
        descriptors: list[int] = []
        for _ in range(MOST_RECORDINGS):
            result = None  # its memory is free for the next one
            close_all(descriptors)
            reset()
            result, descriptors = self._record_once(call)
            recording = json.loads(_read(descriptors[0]))
            shape = [_outline(row) for row in recording["operations"]]
            if shape == before:
                return result, recording, descriptors
            before = shape
        recording["unsupported"].append(f"{MOST_RECORDINGS} calls in a row launched different work")
        return result, recording, descriptors

    def _record_once(self, call: Callable[[], Any]) -> tuple[Any, list[int]]:
        descriptors = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("recording", "recorded-bytes")]
        self._library.harness_begin_recording()
        with closing_on_error(descriptors):
            try:
                result = call()
            finally:
                failed = self._library.harness_end_recording(*descriptors, self._private)
            if failed:
                raise NotRecordable("the recording could not be written")
        return result, descriptors


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _outline(row: list[Any]) -> list[Any]:
    return [row[0], row[1:6]] if row[0] == "launch" else row[:1]
