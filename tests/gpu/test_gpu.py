"""The whole way on a GPU: build, load, evaluate, time. One extension holds the kernels of all candidates, so that nvcc
runs once; the candidates differ in what they call."""

import json
import os

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

PROBLEM = """
import torch
from torch import nn

rows, columns = 16384, 8193


class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a + b)


def get_inputs():
    return [torch.randn(rows, columns, device="cuda"), torch.randn(rows, columns, device="cuda")]


def get_init_inputs():
    return []
"""

KERNELS = r"""
#include <torch/types.h>
#include <cuda_runtime.h>

__global__ void add_relu(const float* a, const float* b, float* c, long n, float sign) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) c[i] = fmaxf(a[i] + sign * b[i], 0.0f);
}
__global__ void add_relu_late(const float* a, const float* b, float* c, long n, long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  for (; i < n; i += gridDim.x * (long)blockDim.x) c[i] = fmaxf(a[i] + b[i], 0.0f);
}
__global__ void write_nowhere(float* c) { c[1L << 45] = 1.0f; }

static int blocks_for(long n) { return (int)((n + 255) / 256); }

torch::Tensor fused(torch::Tensor a, torch::Tensor b, double sign) {
  auto c = torch::empty_like(a);
  long n = a.numel();
  add_relu<<<blocks_for(n), 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n, (float)sign);
  return c;
}
torch::Tensor too_much_shared(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  long n = a.numel();
  add_relu<<<blocks_for(n), 256, 400000>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n, 1.0f);
  return c;
}
torch::Tensor illegal(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  write_nowhere<<<1, 1>>>(c.data_ptr<float>());
  return c;
}
torch::Tensor early(torch::Tensor a, torch::Tensor b, int64_t cycles) {
  static cudaStream_t own = nullptr;
  if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  auto c = torch::empty_like(a);
  add_relu_late<<<132, 256, 0, own>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.numel(), cycles);
  return c;
}
"""
DECLARATIONS = """
#include <torch/extension.h>
torch::Tensor fused(torch::Tensor a, torch::Tensor b, double sign);
torch::Tensor too_much_shared(torch::Tensor a, torch::Tensor b);
torch::Tensor illegal(torch::Tensor a, torch::Tensor b);
torch::Tensor early(torch::Tensor a, torch::Tensor b, int64_t cycles);
"""


def candidate(call):
    return f"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

kernels = load_inline(
    "gpu_tests", cpp_sources={DECLARATIONS!r}, cuda_sources={KERNELS!r},
    functions=["fused", "too_much_shared", "illegal", "early"],
)

class ModelNew(nn.Module):
    def forward(self, a, b):
        return {call}
"""


GOOD = candidate("kernels.fused(a, b, 1.0)")
SPIN_CYCLES = 4_000_000  # about two milliseconds


@pytest.fixture(scope="session")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=30.0, load_s=120.0)


def test_a_right_fused_kernel_is_correct_and_timed_against_the_named_baseline(gpu_bench):
    evaluation = gpu_bench.evaluate(GOOD, PROBLEM, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.baseline == "eager"
    assert evaluation.timing.verdict in ("faster", "tie"), evaluation.timing
    assert evaluation.timing.candidate_us > 4096 * 4097 * 12 / 10e12 * 1e6  # three passes cannot beat 10 TB/s
    assert dict(evaluation.environment)["gpu"]
    assert evaluation.hardware == dict(evaluation.environment)["gpu"]


def test_renamed_weights_match_the_reference_without_a_device(gpu_bench):
    """`torch.Tensor(...)` ignores torch's default device."""
    problem = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 32, bias=False)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
"""
    source = """
import math

import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(32, 64))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def forward(self, x):
        return x @ self.weight.t()
"""
    evaluation = gpu_bench.evaluate(source, problem)
    assert evaluation.outcome == "correct", evaluation.message


def test_a_wrong_kernel_is_a_wrong_value(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate("kernels.fused(a, b, -1.0)"), PROBLEM)
    assert evaluation.outcome == "wrong_value", evaluation.message


def test_failed_launch_does_not_pass_with_old_buffer_contents(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate("kernels.too_much_shared(a, b)"), PROBLEM)
    assert evaluation.outcome in ("wrong_value", "runtime_error"), evaluation.message


def test_an_illegal_access_ends_its_candidate_and_not_the_next_one(gpu_bench):
    broken = gpu_bench.evaluate(candidate("kernels.illegal(a, b)"), PROBLEM)
    assert broken.outcome == "runtime_error"
    assert "illegal" in broken.message
    assert gpu_bench.evaluate(GOOD, PROBLEM).outcome == "correct"


def test_early_return_from_a_separate_stream_saves_no_time(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate(f"kernels.early(a, b, {SPIN_CYCLES})"), PROBLEM, time=True)
    assert evaluation.outcome in ("correct", "suspect", "wrong_value"), evaluation.message
    if evaluation.timing is not None:
        assert evaluation.timing.candidate_us > 1000.0
        assert evaluation.timing.speedup < 1.0


def test_outputs_on_the_cpu_are_not_taken(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate("torch.relu(a + b).cpu()"), PROBLEM)
    assert evaluation.outcome == "wrong_dtype", evaluation.message
    assert "expected cuda:0" in evaluation.message


def test_half_precision_inside_is_a_wrong_value(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate("torch.relu(a.half() + b.half()).float()"), PROBLEM)
    assert evaluation.outcome == "wrong_value", evaluation.message


def test_a_full_device_memory_is_its_candidates_own_and_gone_with_it(gpu_bench):
    hungry = candidate("[torch.empty(1 << 30, device='cuda') for _ in range(1000)]")
    assert gpu_bench.evaluate(hungry, PROBLEM).outcome == "out_of_memory"
    assert gpu_bench.evaluate(GOOD, PROBLEM).outcome == "correct"


def test_the_reference_against_itself_is_no_win(gpu_bench):
    evaluation = gpu_bench.evaluate(candidate("torch.relu(a + b)"), PROBLEM, time=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.speedup == pytest.approx(1.0, abs=0.1)


def test_device_memory_comes_back_through_its_descriptor():
    import torch

    from harness.protocol import device_memory

    torch.zeros(1, device="cuda:0")  # makes the device's context current
    address, descriptor, size = device_memory.allocate_shareable(1 << 20, 0)
    other = device_memory.map_descriptor(descriptor, size, 0)
    here = torch.as_tensor(device_memory.DeviceBytes(address, size), device="cuda:0")
    there = torch.as_tensor(device_memory.DeviceBytes(other, size), device="cuda:0")
    here.copy_(torch.arange(size, device="cuda:0") % 251)
    torch.cuda.synchronize()
    assert size >= 1 << 20
    assert other != address
    assert torch.equal(here, there)
    device_memory.free(address, size, os.dup(descriptor))
    device_memory.free(other, size, descriptor)


def test_a_worker_on_the_cpu_holds_nothing_of_the_gpu(bench):
    """What torch opens at import, to see whether there is a GPU, is not handed down."""
    source = """
import os
from torch import nn

class ModelNew(nn.Module):
    def forward(self, a, b):
        numbers = [number for number in range(3, 64) if os.path.lexists(f"/proc/self/fd/{number}")]
        raise RuntimeError(" ".join({os.readlink(f"/proc/self/fd/{number}") for number in numbers}))
"""
    evaluation = bench.evaluate(source)
    assert evaluation.outcome == "runtime_error"
    assert "harness-arena" in evaluation.message
    assert "/dev/nvidia" not in evaluation.message


def test_the_facts_for_prompts_come_from_the_gpu_that_is_here():
    import torch

    from harness.generate.prompting import read_gpu_facts

    facts = read_gpu_facts()
    properties = torch.cuda.get_device_properties(0)
    assert facts is not None
    assert (facts.name, facts.sms) == (properties.name, properties.multi_processor_count)
    assert facts.arch == f"{properties.major}.{properties.minor}"
    assert facts.shared_per_sm_kb == properties.shared_memory_per_multiprocessor // 1024
    assert facts.shared_per_block_kb == properties.shared_memory_per_block_optin // 1024
    assert (facts.memory_gb, facts.l2_mb) == (round(properties.total_memory / 1e9), properties.L2_cache_size / 2**20)


def test_the_command_evaluates_a_program_on_the_gpu(run_harness, tmp_path):
    (tmp_path / "candidate.py").write_text(GOOD)
    (tmp_path / "problem.py").write_text(PROBLEM)
    args = ["evaluate", "--candidate", "candidate.py", "--problem", "problem.py", "--device", "cuda:0", "--json"]
    finished = run_harness(args, timeout_s=280)
    assert finished.returncode == 0, finished.stderr
    record = json.loads(finished.stdout)
    assert record["outcome"] == "correct", record
    assert (record["device"], record["baseline"]) == ("cuda:0", "eager")
    assert record["speedup"] is None or record["speedup"] > 0
