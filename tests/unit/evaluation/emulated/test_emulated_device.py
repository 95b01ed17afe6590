"""The emulated device as the evaluator sees it: the CPU, on which a worker is told of a GPU."""

import pytest
import torch

from harness.domain import UsageError
from harness.sandbox.devices import CpuDevice, EmulatedDevice, find_device


def test_auto_emulates_cuda_only_where_there_is_no_gpu():
    expected = "cuda:0" if torch.cuda.is_available() else "emulated"
    assert find_device("auto", "cuda").name == expected
    assert find_device("auto", "cpp").name == "cpu"


@pytest.mark.parametrize(("device", "language"), [("emulated", "cpp"), ("cpu", "cuda")])
def test_a_device_that_cannot_run_the_language_is_none(device, language):
    assert find_device(device, language) is None


def test_unknown_device_is_an_error_that_names_the_known_ones():
    with pytest.raises(UsageError, match=r"choose among .*A100"):
        find_device("emulated", "cuda", "Voodoo 3")


def test_its_memory_is_the_cpus_and_its_outputs_lie_on_a_gpu():
    device = EmulatedDevice()
    assert (device.replays_calls, device.torch_device, device.seen_type) == (False, torch.device("cpu"), "cuda")


def test_a_worker_is_told_of_the_gpu_that_was_chosen():
    told = EmulatedDevice("h100").describe_emulation(threads=2, call_s=10.0)
    assert told["target"]["name"] == "NVIDIA H100"
    assert (told["target"]["major"], told["target"]["minor"]) == (9, 0)
    assert told["settings"]["threads"] == 2
    assert told["settings"]["time_limit_s"] < 10.0


def test_no_other_device_pretends():
    assert CpuDevice().describe_emulation(threads=2, call_s=10.0) is None
    assert CpuDevice().seen_type == "cpu"
