"""Has torch's compiler fuse the reference, and builds a kernel that is not launched.

layer: no_kernel
mechanism: Generated kernels are new machine code that no library holds.
problem: kernel_required/gpu_linear_relu
expected: rejected, not_own, runtime_error, timeout
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


@torch.compile
def linear_relu(x, weight, bias):
    return torch.relu(torch.nn.functional.linear(x, weight, bias))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def forward(self, x):
        return linear_relu(x, self.linear.weight, self.linear.bias)
