"""The driver's list of GPUs, with a small library in the driver's place: two GPUs of compute capability 9.0."""

import os
import subprocess
import sys

import pytest

DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return RESULT; }
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int index) { *device = 70 + index; return 0; }
int cuDeviceGetName(char *name, int size, int device) {
    strcpy(name, device == 70 ? "NVIDIA H100 80GB HBM3" : "other");
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 85000000000; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
        case 16: *value = 132; break;      /* MULTIPROCESSOR_COUNT */
        case 38: *value = 50 << 20; break; /* L2_CACHE_SIZE */
        case 75: *value = 9; break;        /* COMPUTE_CAPABILITY_MAJOR */
        case 76: *value = 0; break;        /* COMPUTE_CAPABILITY_MINOR */
        case 81: *value = 228 << 10; break; /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
        case 97: *value = 227 << 10; break; /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
        default: return 1;
    }
    return 0;
}
"""
PROGRAM = """
import sys
from harness.generate.prompting import read_gpu_facts
from harness.hardware.host import list_gpus
from harness.languages import find_devices
print(read_gpu_facts())
print([gpu.name for gpu in list_gpus()], find_devices("auto", "cuda"), find_devices("cuda:1", "cuda"))
print("torch" in sys.modules)
"""


@pytest.fixture
def run_with_driver(tmp_path, needs_compiler):
    """What PROGRAM prints where `cuInit` returns that result and the driver has that version."""
    import torch

    if torch.version.cuda is None:
        pytest.skip("needs a CUDA build of torch: without one no GPU is looked for")

    def run(result, version):
        defined = [f"-DRESULT={result}", f"-DVERSION={version}"]
        library = tmp_path / "libcuda.so.1"
        command = ["cc", "-x", "c", "-shared", "-fPIC", *defined, "-", "-o", library]
        subprocess.run(command, input=DRIVER, text=True, check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
        )
        return finished.stdout.splitlines(), finished.stderr

    return run


def test_gpus_are_described_by_the_driver_without_importing_torch(run_with_driver):
    (facts, found, imported), _ = run_with_driver(0, 99000)
    assert facts.startswith("GpuFacts(name='NVIDIA H100 80GB HBM3', arch='9.0', memory_gb=85, sms=132, ")
    assert "shared_per_sm_kb=228, shared_per_block_kb=227, l2_mb=50, bandwidth_gb_s=3350" in facts
    assert found == "['NVIDIA H100 80GB HBM3', 'other'] ('cuda:0', 'cuda:1') ('cuda:1',)"
    assert imported == "False"


@pytest.mark.parametrize(("result", "version"), [(100, 99000), (0, 9000)], ids=["no device", "old driver"])
def test_gpus_that_torch_cannot_use_are_not_listed(run_with_driver, result, version):
    (facts, *_), stderr = run_with_driver(result, version)
    assert facts == "None"
    assert "no NVIDIA GPU was found on this machine" in stderr
