"""Xid errors of a fake NVML: real ones need a broken GPU."""

from types import SimpleNamespace

import pynvml
import pytest

from harness.executors.evaluator_process import XidWatch


class FakeGpu:
    """`numbers`: of its errors that were not read yet."""

    def __init__(self, numbers=(), *, is_supported=True):
        self.numbers, self.is_supported, self.is_watched = list(numbers), is_supported, False

    def as_nvml(self):
        return SimpleNamespace(
            NVMLError=LookupError, nvmlEventTypeXidCriticalError=8, nvmlEventSetCreate=lambda: "events",
            nvmlDeviceRegisterEvents=self.register, nvmlEventSetWait_v2=self.wait,
        )  # fmt: skip

    def register(self, handle, kinds, events):
        if not self.is_supported:
            raise LookupError("Not Supported")
        assert (handle, kinds, events) == ("gpu", 8, "events")
        self.is_watched = True

    def wait(self, events, timeout_ms):
        assert timeout_ms == 0, "an evaluator must not wait for errors"
        if not self.is_watched or not self.numbers:
            raise LookupError("Timeout")
        return SimpleNamespace(eventType=8, eventData=self.numbers.pop(0))


def test_the_fake_has_names_of_the_real_nvml():
    assert set(vars(FakeGpu().as_nvml())) <= set(dir(pynvml))


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [((), ""), ((13, 31, 43, 45), ""), ((79,), "Xid 79"), ((31, 43, 48, 45), "Xid 48"), ((94, 79), "Xid 94")],
)
def test_only_errors_that_no_program_causes_are_faults_of_the_gpu(numbers, fault):
    assert XidWatch(FakeGpu(numbers).as_nvml(), "gpu").find_fault().partition(",")[0] == fault


def test_a_fault_is_found_when_it_happens():
    gpu = FakeGpu()
    watch = XidWatch(gpu.as_nvml(), "gpu")
    assert watch.find_fault() == ""
    gpu.numbers.append(79)
    assert watch.find_fault().startswith("Xid 79")
    assert watch.find_fault() == ""


def test_a_driver_without_such_events_reports_no_fault():
    assert XidWatch(FakeGpu([79], is_supported=False).as_nvml(), "gpu").find_fault() == ""
