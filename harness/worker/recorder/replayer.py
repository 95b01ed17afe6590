"""The process that replays recorded GPU work: one `do_` method per command of the evaluator.

It never runs host code of a candidate and holds no secret: replayed device code shares its address space.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.worker.recorder.driver_calls import (
    Driver,
    DriverError,
    EdgeData,
    LaunchAttribute,
    LaunchConfig,
    NodeParameters,
    SetParameters,
    map_page,
    open_device,
    unmap_page,
)

_RELAXED, _NON_BLOCKING = 2, 1
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
        for kind, value in (
            (_DYNAMIC_SHARED, facts["dynamic_shared"]),
            (_CARVEOUT, facts["carveout"]),
            (_NON_PORTABLE_CLUSTER, facts["non_portable_cluster"]),
        ):
            if value > 0:
                driver.cuFuncSetAttribute(ctypes.c_void_p(self.handle), kind, value)

    def place(self, packed: str) -> tuple[Any, Any]:
        data = ctypes.create_string_buffer(bytes.fromhex(packed), max(1, len(packed) // 2))
        start = ctypes.addressof(data)
        return (ctypes.c_void_p * max(1, len(self._parameters)))(
            *(start + offset for offset, _ in self._parameters)
        ), data


class RecordedGraph:
    def __init__(self, recording: Mapping[str, Any], blob: bytes, driver: Driver) -> None:
        self.driver = driver
        self._recording, self._blob = recording, blob
        self._images = images = Images(driver, recording["images"], blob)
        self._functions = [Function(driver, images, facts) for facts in recording["functions"]]
        self._restore_globals(images)
        self._kept: list[Any] = []
        self._streams: list[ctypes.c_void_p] = []
        self.stream = self._make_stream()
        self._staging = self._place_writes()
        self.graph = self._capture()

    def close(self) -> None:
        self.driver.cuGraphExecDestroy(ctypes.c_void_p(self.graph))
        for stream in self._streams:
            self.driver.cuStreamDestroy_v2(stream)
        if self._staging:
            self.driver.cuMemFree_v2(ctypes.c_ulonglong(self._staging))
        self._images.close()

    def _restore_globals(self, images: Images) -> None:
        self._globals: list[tuple[int, int, int]] = []  # address in the worker, bytes, address here
        for one in self._recording["globals"]:
            address, size = ctypes.c_ulonglong(), ctypes.c_size_t()
            library = ctypes.c_void_p(images.load(one["image"]))
            self.driver.cuLibraryGetGlobal(ctypes.byref(address), ctypes.byref(size), library, one["name"].encode())
            data = self._blob[one["offset"] : one["offset"] + one["size"]]
            self.driver.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(min(size.value, len(data))))
            self._globals.append((one["address"], one["size"], address.value or 0))

    def _find(self, address: int) -> ctypes.c_ulonglong:
        """A global's address differs between processes."""
        found = (here + address - start for start, size, here in self._globals if start <= address < start + size)
        return ctypes.c_ulonglong(next(found, address))

    def _make_stream(self) -> ctypes.c_void_p:
        self._streams.append(ctypes.c_void_p(self.driver.pointer("cuStreamCreate", _NON_BLOCKING)))
        return self._streams[-1]

    def _place_writes(self) -> int:
        """Keep the bytes that the host copied during the call on the device."""
        size = max((row[3] + row[4] for row in self._recording["operations"] if row[0] == "write"), default=0)
        if not size:
            return 0
        address = ctypes.c_ulonglong()
        self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        self.driver.cuMemcpyHtoD_v2(address, self._blob[:size], ctypes.c_size_t(size))
        return address.value

    def _capture(self) -> int:
        self.driver.cuStreamBeginCapture_v2(self.stream, _RELAXED)
        order = _Order(self.driver, self.stream, self._recording["streams"], self._make_stream)
        for row in self._recording["operations"]:
            self._issue(row, order)
        order.join()
        graph = ctypes.c_void_p()
        self.driver.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        return instantiate(self.driver, graph)

    def _issue(self, row: Sequence[Any], order: _Order) -> None:
        kind, driver = row[0], self.driver
        if kind == "sync":
            order.join()
            return
        if kind == "read":
            return
        if kind in ("record", "wait"):
            getattr(order, kind)(row[1], row[2])
            return
        stream = order.enter(row[1])
        if kind == "launch":
            self._launch(row, stream)
        elif kind in ("copy", "write"):
            source = ctypes.c_ulonglong(row[3] + self._staging) if kind == "write" else self._find(row[3])
            driver.cuMemcpyDtoDAsync_v2(self._find(row[2]), source, ctypes.c_size_t(row[4]), stream)
        elif kind == "copy2d":
            driver.cuMemcpy2DAsync_v2(bytes.fromhex(row[2]), stream)
        elif kind == "set":
            self._set(row, stream)
        elif kind == "graph":
            self._insert(self._rebuild(self._recording["graphs"][row[2]]), stream)
        else:
            raise DriverError(f"unknown operation {kind!r}")

    def _launch(self, row: Sequence[Any], stream: ctypes.c_void_p) -> None:
        function = self._functions[row[2]]
        places, data = function.place(row[6])
        attributes = (LaunchAttribute * max(1, len(row[7])))()
        for i, (number, value) in enumerate(row[7]):
            attributes[i].id = number
            attributes[i].value = (ctypes.c_ubyte * 64)(*bytes.fromhex(value))
        config = LaunchConfig(shared=row[5], stream=stream.value, attribute_count=len(row[7]))
        config.grid, config.block = (ctypes.c_uint * 3)(*row[3]), (ctypes.c_uint * 3)(*row[4])
        config.attributes = ctypes.addressof(attributes)
        self._kept.append((places, data, attributes))
        self.driver.cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function.handle), places, None)

    def _set(self, row: Sequence[Any], stream: ctypes.c_void_p) -> None:
        _, _, target, pitch, element, value, width, height = row
        where, sizes = self._find(target), list(map(ctypes.c_size_t, (pitch, width, height)))
        if height > 1:
            set_rows = getattr(self.driver, f"cuMemsetD2D{8 * element}Async")
            set_rows(where, sizes[0], value, sizes[1], sizes[2], stream)
        else:
            getattr(self.driver, f"cuMemsetD{8 * element}Async")(where, value, sizes[1], stream)

    def _insert(self, child: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        status, number = ctypes.c_int(), ctypes.c_ulonglong()
        graph, before, edges, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        results = (status, number, graph, before, edges, count)
        self.driver.cuStreamGetCaptureInfo_v3(stream, *map(ctypes.byref, results))
        node = ctypes.c_void_p(self.driver.pointer("cuGraphAddChildGraphNode", graph, before, count, child))
        self.driver.cuStreamUpdateCaptureDependencies_v2(stream, ctypes.byref(node), None, ctypes.c_size_t(1), 1)

    def _rebuild(self, facts: Mapping[str, Any]) -> ctypes.c_void_p:
        graph = ctypes.c_void_p(self.driver.pointer("cuGraphCreate", 0))
        nodes = [self._add_node(graph, row) for row in facts["nodes"]]
        edges = facts["edges"]
        if edges:
            count = len(edges)
            sources = (ctypes.c_void_p * count)(*(nodes[edge[0]] for edge in edges))
            targets = (ctypes.c_void_p * count)(*(nodes[edge[1]] for edge in edges))
            data = (EdgeData * count)(*(EdgeData(edge[2], edge[3], edge[4]) for edge in edges))
            self.driver.cuGraphAddDependencies_v2(graph, sources, targets, data, ctypes.c_size_t(count))
        return graph

    def _add_node(self, graph: ctypes.c_void_p, row: Sequence[Any]) -> int:
        none, kind, driver = (None, ctypes.c_size_t(0)), row[0], self.driver
        if kind == "empty":
            return driver.pointer("cuGraphAddEmptyNode", graph, *none)
        if kind == "launch":
            return self._add_kernel(graph, row)
        if kind == "set":
            _, _, target, pitch, element, value, width, height = row
            parameters = SetParameters(target, pitch, value, element, width, height)
            return driver.pointer("cuGraphAddMemsetNode", graph, *none, ctypes.byref(parameters), self._context())
        if kind == "copy3d":
            return driver.pointer("cuGraphAddMemcpyNode", graph, *none, bytes.fromhex(row[2]), self._context())
        if kind == "graph":
            return driver.pointer(
                "cuGraphAddChildGraphNode", graph, *none, self._rebuild(self._recording["graphs"][row[2]])
            )
        raise DriverError(f"unknown node {kind!r}")

    def _add_kernel(self, graph: ctypes.c_void_p, row: Sequence[Any]) -> int:
        function = self._functions[row[2]]
        places, data = function.place(row[6])
        self._kept.append((places, data))
        parameters = NodeParameters(function=function.handle, shared=row[5], parameters=ctypes.addressof(places))
        parameters.grid, parameters.block = (ctypes.c_uint * 3)(*row[3]), (ctypes.c_uint * 3)(*row[4])
        node = self.driver.pointer("cuGraphAddKernelNode_v2", graph, None, ctypes.c_size_t(0), ctypes.byref(parameters))
        for number, value in row[7]:
            if any(bytes.fromhex(value)):
                self.driver.cuGraphKernelNodeSetAttribute(ctypes.c_void_p(node), number, bytes.fromhex(value))
        return node

    def _context(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.driver.pointer("cuCtxGetCurrent"))


class _Order:
    """Maps recorded streams to streams of one capture, ordered against the default stream as recorded."""

    def __init__(
        self,
        driver: Driver,
        first: ctypes.c_void_p,
        streams: Sequence[Mapping[str, Any]],
        make: Callable[[], ctypes.c_void_p],
    ) -> None:
        self._driver, self._first, self._facts, self._make = driver, first, streams, make
        self._own: dict[int, ctypes.c_void_p] = {}
        self._events: dict[int, ctypes.c_void_p] = {}
        self._begin = self._mark(first)
        self._unseen: dict[int, set[int]] = {}

    def _mark(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        event = ctypes.c_void_p(self._driver.pointer("cuEventCreate", 2))
        self._driver.cuEventRecord(event, stream)
        return event

    def _wait(self, stream: ctypes.c_void_p, event: ctypes.c_void_p) -> None:
        self._driver.cuStreamWaitEvent(stream, event, 0)

    def enter(self, number: int) -> ctypes.c_void_p:
        if number not in self._own:
            self._own[number] = self._make() if self._own else self._first
            if len(self._own) > 1:
                self._wait(self._own[number], self._begin)
            self._unseen[number] = {other for other in self._own if self._orders(number, other)}
        stream = self._own[number]
        for other in sorted(self._unseen[number]):
            self._wait(stream, self._mark(self._own[other]))
        self._unseen[number] = set()
        for other in self._own:
            if self._orders(number, other):
                self._unseen[other].add(number)
        return stream

    def _orders(self, one: int, other: int) -> bool:
        first, second = self._facts[one], self._facts[other]
        return one != other and first["blocking"] and second["blocking"] and (first["legacy"] or second["legacy"])

    def record(self, stream: int, event: int) -> None:
        self._events[event] = self._mark(self.enter(stream))

    def wait(self, stream: int, event: int) -> None:
        if event in self._events:
            self._wait(self.enter(stream), self._events[event])

    def join(self) -> None:
        others = [stream for stream in self._own.values() if stream is not self._first]
        for stream in others:
            self._wait(self._first, self._mark(stream))
        self._begin = self._mark(self._first)
        for stream in others:
            self._wait(stream, self._begin)
        self._unseen = {number: set() for number in self._own}


def instantiate(driver: Driver, graph: ctypes.c_void_p) -> int:
    executable = driver.pointer("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
    driver.cuGraphUpload(ctypes.c_void_p(executable), None)
    return executable


SPIN_NS = 30_000  # keeps the device busy until event, graph and event are queued behind it
# Two kernels: one that does nothing, and one that waits for `time_ns`.
_KERNELS = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry harness_nothing() { ret; }
.visible .entry harness_spin(.param .u64 time_ns)
{
    .reg .pred %p<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [time_ns];
    mov.u64 %rd2, %globaltimer;
AGAIN:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, %rd1;
    @%p1 bra AGAIN;
    ret;
}
\0"""


class ReplayServer:
    def __init__(self) -> None:
        self._graphs: dict[str, int] = {}
        self._pages: list[tuple[int, int]] = []

    def do_open_replayer(self, message: dict[str, Any]) -> None:
        os.sched_setaffinity(0, set(message["cores"]))  # first: host memory is taken from the core's own bank
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(message["connections"])
        self._device = message["device"]
        self._driver = Driver()
        open_device(self._driver, self._device)
        self._module = ctypes.c_void_p(self._driver.pointer("cuModuleLoadData", _KERNELS))
        self._spin = self._find_kernel(b"harness_spin")
        self._events = [ctypes.c_void_p(self._driver.pointer("cuEventCreate", 0)) for _ in range(2)]
        self._stream = ctypes.c_void_p(self._driver.pointer("cuStreamCreate", 1))
        self._graphs["empty"], self._graphs["nothing"] = self._make_graph(None), self._make_graph(b"harness_nothing")

    def do_map_pages(self, message: dict[str, Any], *descriptors: int) -> None:
        for (address, size), descriptor in zip(message["pages"], descriptors, strict=True):
            map_page(self._driver, descriptor, address, size, self._device)
            self._pages.append((address, size))
            os.close(descriptor)

    def do_build_graph(self, message: dict[str, Any], recording: int, blob: int) -> None:
        contents = [os.pread(descriptor, os.fstat(descriptor).st_size, 0) for descriptor in (recording, blob)]
        for descriptor in (recording, blob):
            os.close(descriptor)
        self._recorded = RecordedGraph(json.loads(contents[0]), contents[1], self._driver)
        self._graphs["call"] = self._recorded.graph

    def do_unload(self, message: dict[str, Any]) -> None:
        """Leave the process as it was before the recording."""
        self._recorded.close()
        while self._pages:
            unmap_page(self._driver, *self._pages.pop())

    def do_replay(self, message: dict[str, Any]) -> dict[str, Any]:
        """`clock` "device" is the time between two events around the graph, which device code could overwrite. "host"
        is the time from the launch until its end is seen, less that of a graph with one empty kernel; device code
        cannot change it. Bytes of `places`, (address, size), are read immediately, which shows work that has not ended.
        """
        driver, stream = self._driver, self._stream
        graph = ctypes.c_void_p(self._graphs[message["graph"]])
        driver.cuCtxResetPersistingL2Cache()
        driver.cuStreamSynchronize(stream)
        if message["clock"] == "host":
            nothing = ctypes.c_void_p(self._graphs["nothing"])
            self._time_on_host(nothing)  # wakes the device
            usual_us = self._time_on_host(nothing)
            time_us = self._time_on_host(graph) - usual_us
        else:
            time_us = self._time_on_device(graph)
        read = [self._read(*place).hex() for place in message["places"]]
        return {"time_us": time_us, "read": read}

    def do_replay_in_row(self, message: dict[str, Any]) -> None:
        graph = ctypes.c_void_p(self._graphs["call"])
        for _ in range(message["count"]):
            self._driver.cuGraphLaunch(graph, self._stream)
        self._driver.cuStreamSynchronize(self._stream)

    def _time_on_host(self, graph: ctypes.c_void_p) -> float:
        began_ns = time.perf_counter_ns()
        self._driver.cuGraphLaunch(graph, self._stream)
        self._driver.cuStreamSynchronize(self._stream)
        return (time.perf_counter_ns() - began_ns) / 1e3

    def _time_on_device(self, graph: ctypes.c_void_p) -> float:
        driver, stream = self._driver, self._stream
        self._launch_spin()
        driver.cuEventRecord(self._events[0], stream)
        driver.cuGraphLaunch(graph, stream)
        driver.cuEventRecord(self._events[1], stream)
        driver.cuStreamSynchronize(stream)
        passed_ms = ctypes.c_float()
        driver.cuEventElapsedTime_v2(ctypes.byref(passed_ms), *self._events)
        return passed_ms.value * 1e3

    def _read(self, address: int, size: int) -> bytes:
        target = ctypes.create_string_buffer(size)
        self._driver.cuMemcpyDtoH_v2(target, ctypes.c_ulonglong(address), ctypes.c_size_t(size))
        return target.raw

    def _find_kernel(self, name: bytes) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._driver.pointer("cuModuleGetFunction", self._module, name))

    def _launch_spin(self) -> None:
        time_ns = ctypes.c_ulonglong(SPIN_NS)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(time_ns))
        self._driver.cuLaunchKernel(self._spin, 1, 1, 1, 1, 1, 1, 0, self._stream, arguments, None)

    def _make_graph(self, kernel: bytes | None) -> int:
        self._driver.cuStreamBeginCapture_v2(self._stream, 2)
        if kernel is not None:
            self._driver.cuLaunchKernel(self._find_kernel(kernel), 1, 1, 1, 1, 1, 1, 0, self._stream, None, None)
        graph = ctypes.c_void_p()
        self._driver.cuStreamEndCapture(self._stream, ctypes.byref(graph))
        return instantiate(self._driver, graph)
