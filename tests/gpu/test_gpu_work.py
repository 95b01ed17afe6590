"""Whose kernels did the work on a GPU, and how near a call comes to what the device can do."""

import pytest
from shared_bench import TINY_PROBLEM

from harness.domain import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

PROBLEM = TINY_PROBLEM.replace("64, 65", "8192, 8192").replace("a + b", "torch.relu(a + b)")
PRODUCT = PROBLEM.replace("torch.relu(a + b)", "a @ b").replace("8192, 8192", "2048, 2048")

CANDIDATE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

KERNELS = r"""
#include <torch/types.h>

__global__ void __launch_bounds__(256) add_relu(const float* a, const float* b, float* c, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) c[i] = fmaxf(a[i] + b[i], 0.0f);
}
torch::Tensor fused(torch::Tensor a, torch::Tensor b) {
  a = a.contiguous();
  b = b.contiguous();
  auto c = torch::empty_like(a);
  long n = a.numel();
  add_relu<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::matmul(a, b); }
"""
DECLARATIONS = """
torch::Tensor fused(torch::Tensor a, torch::Tensor b);
torch::Tensor product(torch::Tensor a, torch::Tensor b);
"""
extension = load_inline(
    name="gpu_work", cpp_sources=DECLARATIONS, cuda_sources=KERNELS, functions=["fused", "product"]
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        BODY
'''
OWN = CANDIDATE.replace("BODY", "return extension.fused(a, b)")
DECOY = CANDIDATE.replace("BODY", "return torch.relu(a + b) + 0 * extension.fused(a, b)")
LIBRARY = CANDIDATE.replace("BODY", "return extension.product(a, b)")
PLAIN = PROBLEM.replace("class Model(", "class ModelNew(")
GRAPH = CANDIDATE.replace(
    "BODY",
    """
        if not hasattr(self, "graph"):
            self.a, self.b = a.clone(), b.clone()
            extension.fused(self.a, self.b)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = extension.fused(self.a, self.b)
        self.a.copy_(a)
        self.b.copy_(b)
        self.graph.replay()
        return self.out.clone()
""",
).replace("<<<(n + 255) / 256, 256>>>", "<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>").replace(
    "#include <torch/types.h>", "#include <torch/types.h>\n#include <c10/cuda/CUDAStream.h>"
)  # fmt: skip


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=30.0, load_s=200.0)


def evaluate(bench, source, problem=PROBLEM, *, time=False, **fields):
    return bench.evaluate(source, Problem(name="add", suite="tiny", source=problem, **fields), time=time)


def test_custom_kernel_does_the_work_within_the_limits_of_the_device(gpu_bench):
    evaluation = evaluate(gpu_bench, OWN, time=True, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.custom > 0.5
    assert evaluation.work.custom_kernels == ("add_relu",)
    assert evaluation.work.without_custom == "changed"
    assert 0.3 < evaluation.roofline.peak_fraction < 1.4
    assert evaluation.roofline.moved_bytes == 3 * 4 * 8192 * 8192


def test_a_decoy_is_found_out(gpu_bench):
    evaluation = evaluate(gpu_bench, DECOY, requires_kernel=True)
    assert evaluation.outcome == "rejected"
    assert evaluation.work.without_custom == "unchanged"


def test_a_product_in_an_extension_is_the_librarys_work(gpu_bench):
    evaluation = evaluate(gpu_bench, LIBRARY, PRODUCT)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.library > 0.3
    assert evaluation.work.custom < 0.1


def test_torchs_operators_are_torchs_work(gpu_bench):
    evaluation = evaluate(gpu_bench, PLAIN)
    assert evaluation.work.torch > 0.5
    assert evaluation.work.custom == 0
    assert evaluate(gpu_bench, PLAIN, requires_kernel=True).outcome == "rejected"


def test_a_kernel_that_is_replayed_in_a_graph_is_no_decoy(gpu_bench):
    evaluation = evaluate(gpu_bench, GRAPH, requires_kernel=True)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.work.without_custom in ("changed", "failed")
    assert evaluation.work.custom > 0.2


def test_a_gpu_moves_memory_and_multiplies():
    from harness.evaluation.timing.roofline import measure_peaks
    from harness.sandbox.devices import CudaDevice

    peaks = measure_peaks(CudaDevice())
    assert 100 < peaks.bandwidth_gb_s < 20_000
    assert 10 < peaks.tflops < 5_000
    assert peaks.matrix_dtype in ("bfloat16", "float16")
