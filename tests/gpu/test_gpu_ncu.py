"""Hardware counters of a candidate's kernels, with the ncu of this machine."""

import pytest

from harness.evaluation.counters import NO_PERMISSION, find_ncu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_ncu() is None, reason="needs ncu (Nsight Compute) on PATH; it is not there"),
]
SIZE = 8192
INPUT_BYTES = 4 * SIZE * SIZE

PROBLEM = f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a + b)


def get_inputs():
    return [torch.randn({SIZE}, {SIZE}), torch.randn({SIZE}, {SIZE})]


def get_init_inputs():
    return []
"""
PRODUCT = PROBLEM.replace("torch.relu(a + b)", "torch.relu(a @ b)").replace(str(SIZE), "2048")

CUDA = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

KERNELS = r"""
#include <torch/types.h>

namespace {
template <typename T>
__global__ void __launch_bounds__(256) add_relu(const T* a, const T* b, T* c, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) c[i] = fmaxf(a[i] + b[i], 0.0f);
}
}
torch::Tensor fused(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  long n = a.numel();
  add_relu<float><<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""
extension = load_inline(
    name="gpu_ncu", cpp_sources="torch::Tensor fused(torch::Tensor a, torch::Tensor b);", cuda_sources=KERNELS,
    functions=["fused"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.fused(a, b)
'''
TRITON = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu_of_sum(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(a + i, i < n) + tl.load(b + i, i < n)
    tl.store(out + i, tl.maximum(total, 0.0), i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        n = a.numel()
        relu_of_sum[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
        return out
"""
WITH_CUBLAS = TRITON.replace("n = a.numel()", "b = (a @ b).contiguous(); a = torch.zeros_like(b); n = a.numel()")


@pytest.fixture(scope="module")
def count(tmp_path_factory, build_cache):
    """The report about one correct program, and the seconds that it took."""
    from harness.api import Evaluator
    from harness.executors.settings import LocalSettings

    problems = tmp_path_factory.mktemp("problems")
    settings = LocalSettings(cache=build_cache, profile=True)
    with Evaluator(device="cuda:0", fidelity="correctness", settings=settings) as evaluator:

        def evaluate(candidate, problem, language):
            path = problems / f"{language}_{abs(hash(problem))}.py"
            path.write_text(problem)
            evaluation = evaluator.evaluate(candidate, path, language=language)
            assert evaluation.outcome == "correct", evaluation.message
            if evaluation.counters.note == NO_PERMISSION:
                pytest.skip(NO_PERMISSION)
            return evaluation.counters, dict(evaluation.phases_s)["counters"]

        yield evaluate


def require_sensible(metrics):
    """Of a kernel that reads two large inputs once and writes as much as one of them."""
    assert INPUT_BYTES / 20e12 * 1e9 < metrics["gpu__time_duration.sum"] < INPUT_BYTES / 50e9 * 1e9
    assert 1.8 * INPUT_BYTES < metrics["dram__bytes_read.sum"] < 2.5 * INPUT_BYTES
    assert 8 <= metrics["launch__registers_per_thread"] <= 255
    assert 10 < metrics["sm__warps_active.avg.pct_of_peak_sustained_active"] <= 100
    assert 10 < metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] <= 100


@pytest.mark.nvcc
def test_cuda_kernel_counters_are_sensible_within_20_s(count):
    report, took_s = count(CUDA, PROBLEM, "cuda")
    assert ["add_relu" in one.kernel for one in report.kernels] == [True], report
    require_sensible(dict(report.kernels[0].metrics))
    assert (report.note, report.kernels[0].block) == ("", "(256, 1, 1)")
    assert len(report.kernels[0].metrics) >= 20
    assert took_s < 20


def test_triton_kernel_counters_are_sensible_within_20_s(count):
    report, took_s = count(TRITON, PROBLEM, "triton")
    assert [one.kernel for one in report.kernels] == ["relu_of_sum"], report
    require_sensible(dict(report.kernels[0].metrics))
    assert took_s < 20


def test_kernels_of_libraries_are_not_counted(count):
    report, _ = count(WITH_CUBLAS, PRODUCT, "triton")
    assert [one.kernel for one in report.kernels] == ["relu_of_sum"], report
