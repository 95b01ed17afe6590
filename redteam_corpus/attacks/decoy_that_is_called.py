"""Calls its kernel, and returns what torch computes.

layer: no_kernel
mechanism: A profiler that only asks whether the kernel ran sees it run.
problem: kernel_required/add
expected: rejected, not_own
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

torch::Tensor add(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    const float* x = a.data_ptr<float>();
    const float* y = b.data_ptr<float>();
    float* z = out.data_ptr<float>();
    at::parallel_for(0, a.numel(), 1024, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) z[i] = x[i] + y[i];
    });
    return out;
}
"""
extension = load_inline(name="parallel_for", cpp_sources=SOURCE, functions=["add"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        extension.add(a, b)
        return a + b
