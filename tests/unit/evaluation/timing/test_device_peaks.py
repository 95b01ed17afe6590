"""What a device can do at most is measured once, remembered, and only ever raised."""

import json
from dataclasses import asdict

import pytest
import torch

from harness.domain import StoreError
from harness.evaluation.timing.roofline import FILE_NAME, DevicePeaks, PeakStore, measure_peaks, name_device
from harness.sandbox.devices import CpuDevice

CPU = CpuDevice()


def make(bandwidth=1.0, **rates):
    return DevicePeaks(hardware="a chip", bandwidth_gb_s=bandwidth, tflops_by_dtype=rates or {"float32": 1.0})


def remember(folder, peaks):
    (folder / FILE_NAME).write_text(json.dumps({name_device(CPU): asdict(peaks), "another": {}}))


@pytest.mark.slow
def test_a_cpu_moves_memory_and_multiplies():
    threads = torch.get_num_threads()
    peaks = measure_peaks(CPU)
    assert 0.5 < peaks.bandwidth_gb_s < 5000
    assert 0.001 < peaks.tflops < 500
    assert peaks.matrix_dtype == "float32"
    assert torch.get_num_threads() == threads


def test_cached_peaks_are_not_measured_again(tmp_path):
    impossible = make(bandwidth=1e9, float32=1e9)
    remember(tmp_path, impossible)
    assert PeakStore(tmp_path).find(CPU) == impossible


def test_cached_measurement_survives_the_process_and_keeps_other_devices(tmp_path):
    remember(tmp_path, make(bandwidth=1e9, float32=1e-9))
    measured = PeakStore(tmp_path).measure(CPU)
    assert measured.bandwidth_gb_s == 1e9
    assert measured.tflops > 1e-9
    assert PeakStore(tmp_path).look_up(CPU) == measured
    assert "another" in json.loads((tmp_path / FILE_NAME).read_text())


def test_nothing_is_known_of_a_device_that_was_never_measured(tmp_path):
    assert PeakStore(tmp_path).look_up(CPU) is None
    assert PeakStore(None).look_up(CPU) is None


def test_a_slower_measurement_lowers_nothing():
    raised = make(10.0, tf32=2.0, float32=1.0).raised_by(make(20.0, tf32=1.0, float32=1.5))
    assert raised == make(20.0, tf32=2.0, float32=1.5)
    assert raised.matrix_dtype == "tf32"


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / FILE_NAME).write_text(json.dumps({name_device(CPU): {"speed": 1}}))
    with pytest.raises(StoreError, match=FILE_NAME):
        PeakStore(tmp_path).find(CPU)
