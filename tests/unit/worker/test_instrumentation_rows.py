"""How a profiler's events become rows: the innermost range that launched a kernel, times added up by name."""

import _ctypes
import ctypes
import shutil
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.autograd.profiler import record_function

from harness.worker.instrumentation import CALL_RANGE, Observer, find_candidate_libraries


class Span(SimpleNamespace):
    def elapsed_us(self):
        return self.end - self.start


def event(name, start, end, *, number=0, device=DeviceType.CPU):
    span = Span(start=start, end=end)
    return SimpleNamespace(name=name, time_range=span, id=number, device_type=device, is_async=False, thread=1)


HOST = [
    event(CALL_RANGE, 0, 100, number=1),
    event("own::f", 10, 50, number=2),
    event("cudaLaunchKernel", 12, 14, number=7),
    event("aten::mm", 20, 40, number=3),
    event("cuLaunchKernelEx", 22, 24, number=8),
    event("cudaLaunchKernel", 60, 62, number=9),
    event("aten::add", 70, 80, number=4),
    event("cudaLaunchKernel", 71, 72, number=10),
]
DEVICE = [
    event("own::f", 20, 90, number=2, device=DeviceType.CUDA),  # a range is shown on the device too
    event("mine", 20, 50, number=7, device=DeviceType.CUDA),
    event("nvjet", 50, 70, number=8, device=DeviceType.CUDA),
    event("late", 70, 75, number=9, device=DeviceType.CUDA),
    event("elementwise", 80, 90, number=10, device=DeviceType.CUDA),
    event("graphed", 90, 95, number=99, device=DeviceType.CUDA),
]


def test_each_kernel_comes_with_the_innermost_range_that_launched_it(tmp_path):
    rows = list(Observer("profile", tmp_path)._list_kernels([*HOST, *DEVICE], HOST))
    assert rows == [
        (("own::f", "mine"), 30),
        (("aten::mm", "nvjet"), 20),
        ((CALL_RANGE, "late"), 5),
        (("aten::add", "elementwise"), 10),
        (("", "graphed"), 5),
    ]


def test_a_kernel_counts_that_is_named_like_the_range_that_launched_it(tmp_path):
    """As in Inductor's code."""
    host = [event("triton_poi_fused_add_0", 10, 30, number=2), event("cuLaunchKernel", 12, 14, number=7)]
    on_device = {"device": DeviceType.CUDA}
    shown = event("triton_poi_fused_add_0", 20, 60, number=2, **on_device)
    kernel = event("triton_poi_fused_add_0", 20, 55, number=7, **on_device)
    rows = list(Observer("profile", tmp_path)._list_kernels([*host, shown, kernel], host))
    assert rows == [(("triton_poi_fused_add_0", "triton_poi_fused_add_0"), 35)]


def test_a_profile_tells_what_each_range_and_operator_took_itself(tmp_path):
    a = torch.randn(300, 300)

    def call():
        with record_function("own::f"):
            torch.mm(a, a)

    told = Observer("profile", tmp_path).profile(call, torch.device("cpu"))
    names = [name for name, _ in told["host"]]
    assert {CALL_RANGE, "own::f", "aten::mm"} <= set(names)
    assert len(set(names)) == len(names)
    assert sum(spent_us for _, spent_us in told["host"]) == pytest.approx(told["total_us"], rel=0.01)
    assert told["kernels"] == []


def test_nothing_of_an_ordinary_process_is_a_library_of_a_candidate(tmp_path):
    assert find_candidate_libraries(tmp_path) == []


def test_files_mapped_after_the_start_are_libraries_of_a_candidate(tmp_path):
    """The cache with harness's own driver library may lie in the scratch folder."""
    libraries = [tmp_path / name for name in ("before.so", "after.so")]
    for path in libraries:
        shutil.copy(_ctypes.__file__, path)
    before = ctypes.CDLL(str(libraries[0]))
    observer = Observer("profile", tmp_path)
    after = ctypes.CDLL(str(libraries[1]))
    told = observer.profile(lambda: None, torch.device("cpu"))
    assert told["libraries"] == [str(libraries[1])], (before, after)
