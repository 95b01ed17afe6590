import pytest

from harness.builder.toolchain import Toolchain
from harness.executors.device_evaluators import choose_toolchain
from harness.executors.settings import LocalSettings, Setup
from harness.sandbox.devices import CpuDevice, EmulatedDevice

TOOLCHAIN = Toolchain(
    compiler=None, compiler_version=None, nvcc_version="13.0", cuda_home=None, ninja_version=None, torch_version="2",
    torch_cuda="13.0", python_abi="", architecture="9.0a",
)  # fmt: skip


@pytest.mark.parametrize(
    ("device", "option", "architecture"),
    [
        (EmulatedDevice("A100"), None, "8.0"),
        (EmulatedDevice("B200"), None, "10.0a"),
        (EmulatedDevice("A100"), "9.0a", "9.0a"),
        (CpuDevice(), None, "9.0a"),
        (None, None, "9.0a"),
    ],
)
def test_nvcc_checks_what_is_emulated_for_the_emulated_gpu(device, option, architecture):
    setup = Setup(settings=LocalSettings(architecture=option), toolchain=TOOLCHAIN, isolation=None)
    assert choose_toolchain(setup, device).architecture == architecture
