"""The process that replays recorded GPU work: one `do_` method per command of the evaluator.

It never runs host code of a candidate and holds no secret: replayed device code shares its address space.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any

from harness.worker.recorder.driver_calls import Driver, map_page, open_device, unmap_page
from harness.worker.recorder.graphs import RecordedGraph, instantiate

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
