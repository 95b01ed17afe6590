"""The process that replays recorded GPU work: one `do_` method per command of the evaluator.

It never runs host code of a candidate and holds no secret: replayed device code shares its address space.
"""

import ctypes
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from harness.protocol.descriptors import close_all
from harness.protocol.device_memory import MOST_RECORDING_BYTES
from harness.worker.recorder.code_images import Function, Images
from harness.worker.recorder.device_spans import DeviceSpans, require_portable
from harness.worker.recorder.driver_calls import (
    Driver,
    DriverError,
    EdgeData,
    LaunchAttribute,
    LaunchConfig,
    NodeParameters,
    SetParameters,
    await_all_nodes,
    instantiate,
    map_page,
    open_device,
    unmap_page,
)
from harness.worker.recorder.marks import Marks, divide_time
from harness.worker.recorder.stream_order import StreamOrder

_RELAXED, _NON_BLOCKING = 2, 1
_PROGRAMMATIC = 6  # the launch attribute for stream order


class RecordedGraph:
    def __init__(self, recording: Mapping[str, Any], blob: bytes, driver: Driver) -> None:
        self.driver = driver
        self._recording, self._blob = recording, blob
        self._images = images = Images(driver, recording["images"], blob)
        self._functions = [Function(driver, images, facts) for facts in recording["functions"]]
        self._restore_globals(images)
        self._kept: list[Any] = []
        self._is_programmatic = False
        self._marks: Marks | None = None
        self._streams: list[ctypes.c_void_p] = []
        self.stream = self._make_stream()
        self._left_out: frozenset[int] = frozenset()  # functions
        self._staging, staging_bytes = self._place_writes()
        here = [(address, size) for _, size, address in self._globals]
        self._spans = DeviceSpans([*here, (self._staging, staging_bytes)])
        self.graph = self._capture()
        self._others: list[int] = []

    def capture_without(self, functions: Sequence[int]) -> int:
        """Return a graph in which these kernels are not launched."""
        self._left_out = frozenset(functions)
        self._others.append(self._capture())
        return self._others[-1]

    def capture_with_marks(self) -> tuple[int, Marks]:
        """Return a graph with an event before and after each operation, for which programmatic launches wait."""
        self._left_out, self._marks = frozenset(), Marks(self.driver)
        try:
            self._others.append(self._capture())
            return self._others[-1], self._marks
        finally:
            self._marks = None

    def close(self) -> None:
        for graph in (self.graph, *self._others):
            self.driver.cuGraphExecDestroy(ctypes.c_void_p(graph))
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
            self._globals.append((one["address"], min(size.value, one["size"]), address.value or 0))

    def _find(self, address: int) -> ctypes.c_ulonglong:
        """A global's address differs between processes."""
        found = (here + address - start for start, size, here in self._globals if start <= address < start + size)
        return ctypes.c_ulonglong(next(found, address))

    def _make_stream(self) -> ctypes.c_void_p:
        self._streams.append(ctypes.c_void_p(self.driver.pointer("cuStreamCreate", _NON_BLOCKING)))
        return self._streams[-1]

    def _place_writes(self) -> tuple[int, int]:
        """Keep the bytes that the host copied during the call on the device. Return address and size."""
        size = max((row[3] + row[4] for row in self._recording["operations"] if row[0] == "write"), default=0)
        if not size:
            return 0, 0
        if size > len(self._blob):
            raise DriverError("bytes that the host copied are missing")
        address = ctypes.c_ulonglong()
        self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        self.driver.cuMemcpyHtoD_v2(address, self._blob[:size], ctypes.c_size_t(size))
        return address.value, size

    def _capture(self) -> int:
        self._is_programmatic = False
        self.driver.cuStreamBeginCapture_v2(self.stream, _RELAXED)
        if self._marks:
            self._marks.begin(self.stream)
        order = StreamOrder(self.driver, self.stream, self._recording["streams"], self._make_stream)
        for row in self._recording["operations"]:
            self._issue(row, order)
        order.join()
        graph = ctypes.c_void_p()
        self.driver.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        if self._is_programmatic:
            await_all_nodes(self.driver, graph)
        return instantiate(self.driver, graph)

    def _issue(self, row: Sequence[Any], order: StreamOrder) -> None:
        kind = row[0]
        if kind == "sync":
            order.join()
            return
        if kind == "read":
            return
        if kind in ("record", "wait"):
            getattr(order, kind)(row[1], row[2])
            return
        stream = order.enter(row[1])
        if kind == "graph":
            self._insert(self._rebuild(self._recording["graphs"][row[2]]), stream)
            return
        with self._marks.around(row, stream) if self._marks else nullcontext():
            self._issue_work(row, stream)

    def _issue_work(self, row: Sequence[Any], stream: ctypes.c_void_p) -> None:
        kind, driver = row[0], self.driver
        if kind == "launch":
            self._launch(row, stream)
        elif kind in ("copy", "write"):
            target = self._find(row[2])
            source = ctypes.c_ulonglong(row[3] + self._staging) if kind == "write" else self._find(row[3])
            for place in (target, source):
                self._spans.require(place.value, row[4])
            driver.cuMemcpyDtoDAsync_v2(target, source, ctypes.c_size_t(row[4]), stream)
        elif kind == "copy2d":
            driver.cuMemcpy2DAsync_v2(self._spans.require_copy2d(bytes.fromhex(row[2])), stream)
        elif kind == "copy3d":
            driver.cuMemcpy3DAsync_v2(self._spans.require_copy3d(bytes.fromhex(row[2])), stream)
        elif kind == "set":
            self._set(row, stream)
        else:
            raise DriverError(f"unknown operation {kind!r}")

    def _launch(self, row: Sequence[Any], stream: ctypes.c_void_p) -> None:
        if row[2] in self._left_out:
            return
        function = self._functions[row[2]]
        places, data = function.place(row[6])
        given = [one for one in row[7] if not (self._marks and one[0] == _PROGRAMMATIC)]
        attributes = (LaunchAttribute * max(1, len(given)))()
        for i, (number, value) in enumerate(given):
            require_portable(number)
            self._is_programmatic |= number == _PROGRAMMATIC
            attributes[i].id = number
            attributes[i].value = (ctypes.c_ubyte * 64)(*bytes.fromhex(value))
        config = LaunchConfig(shared=row[5], stream=stream.value, attribute_count=len(given))
        config.grid, config.block = (ctypes.c_uint * 3)(*row[3]), (ctypes.c_uint * 3)(*row[4])
        config.attributes = ctypes.addressof(attributes)
        self._kept.append((places, data, attributes))
        self.driver.cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function.handle), places, None)

    def _set(self, row: Sequence[Any], stream: ctypes.c_void_p) -> None:
        _, _, target, pitch, element, value, width, height = row
        where, sizes = self._find(target), list(map(ctypes.c_size_t, (pitch, width, height)))
        self._spans.require_rows(where.value, pitch, width * element, height)
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
        edges = [(nodes[edge[0]], nodes[edge[1]], EdgeData(*edge[2:5])) for edge in facts["edges"]]
        if self._marks:
            edges = self._marks.connect(graph, facts["nodes"], nodes, facts["edges"])
        if edges:
            count = len(edges)
            sources = (ctypes.c_void_p * count)(*(source for source, *_ in edges))
            targets = (ctypes.c_void_p * count)(*(target for _, target, _ in edges))
            data = (EdgeData * count)(*(data for *_, data in edges))
            self.driver.cuGraphAddDependencies_v2(graph, sources, targets, data, ctypes.c_size_t(count))
            if any(edge.from_port or edge.type for *_, edge in edges):
                await_all_nodes(self.driver, graph)
        return graph

    def _add_node(self, graph: ctypes.c_void_p, row: Sequence[Any]) -> int:
        none, kind, driver = (None, ctypes.c_size_t(0)), row[0], self.driver
        if kind == "empty" or (kind == "launch" and row[2] in self._left_out):
            return driver.pointer("cuGraphAddEmptyNode", graph, *none)
        if kind == "launch":
            return self._add_kernel(graph, row)
        if kind == "set":
            _, _, target, pitch, element, value, width, height = row
            self._spans.require_rows(target, pitch, width * element, height)
            parameters = SetParameters(target, pitch, value, element, width, height)
            return driver.pointer("cuGraphAddMemsetNode", graph, *none, ctypes.byref(parameters), self._context())
        if kind == "copy3d":
            copy = self._spans.require_copy3d(bytes.fromhex(row[2]))
            return driver.pointer("cuGraphAddMemcpyNode", graph, *none, copy, self._context())
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
            require_portable(number)
            if any(bytes.fromhex(value)):
                self.driver.cuGraphKernelNodeSetAttribute(ctypes.c_void_p(node), number, bytes.fromhex(value))
        return node

    def _context(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.driver.pointer("cuCtxGetCurrent"))


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


def read_memory(driver: Driver, address: int, size: int) -> bytes:
    target = ctypes.create_string_buffer(size)
    driver.cuMemcpyDtoH_v2(target, ctypes.c_ulonglong(address), ctypes.c_size_t(size))
    return target.raw


class ReplayServer:
    def __init__(self) -> None:
        self._graphs: dict[str, int] = {}
        self._pages: list[tuple[int, int]] = []
        self._marks: Marks | None = None  # of the graph "marked"

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
        if os.fstat(recording).st_size > MOST_RECORDING_BYTES:
            raise DriverError("the recording is too large")
        contents = [os.pread(descriptor, os.fstat(descriptor).st_size, 0) for descriptor in (recording, blob)]
        close_all((recording, blob))
        self._recorded = RecordedGraph(json.loads(contents[0]), contents[1], self._driver)
        self._graphs["call"] = self._recorded.graph

    def do_leave_out(self, message: dict[str, Any]) -> None:
        self._graphs["without"] = self._recorded.capture_without(message["functions"])

    def do_time_kernels(self, message: dict[str, Any]) -> dict[str, Any]:
        """Code is loaded in the first of several such replays."""
        if self._marks is None:
            self._graphs["marked"], self._marks = self._recorded.capture_with_marks()
        self._launch_spin()
        self._driver.cuGraphLaunch(ctypes.c_void_p(self._graphs["marked"]), self._stream)
        self._driver.cuStreamSynchronize(self._stream)
        intervals = self._marks.measure()
        times_us = divide_time(intervals, frozenset(message["own"]))
        return {"times": [[function, time_us] for function, time_us in times_us.items()], "operations": len(intervals)}

    def do_unload(self, message: dict[str, Any]) -> None:
        """Leave the process as it was before the recording."""
        if self._marks:
            self._marks.close()
            self._marks = None
        self._recorded.close()
        while self._pages:
            unmap_page(self._driver, *self._pages.pop())

    def do_replay(self, message: dict[str, Any]) -> dict[str, Any]:
        """`clock` "device" is the time between two events around the graph, which device code could overwrite. "host"
        is the time from the launch until its end is seen, less that of a graph with one empty kernel, both queued
        behind a kernel that waits; device code cannot change it. Bytes of `places`, (address, size), are read
        immediately, which shows work that has not ended.
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
        read = [read_memory(driver, *place).hex() for place in message["places"]]
        return {"time_us": time_us, "read": read}

    def do_replay_in_row(self, message: dict[str, Any]) -> None:
        graph = ctypes.c_void_p(self._graphs["call"])
        for _ in range(message["count"]):
            self._driver.cuGraphLaunch(graph, self._stream)
        self._driver.cuStreamSynchronize(self._stream)

    def _time_on_host(self, graph: ctypes.c_void_p) -> float:
        began_ns = time.perf_counter_ns()
        self._launch_spin()
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
