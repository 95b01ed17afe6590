"""Puts torch's product into ranges that are called like those of its own kernels.

layer: no_kernel
mechanism: A profile names what ran by the range that it ran in, and anybody can open a range.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: no
"""

import ctypes

from torch import nn
from torch.profiler import record_function
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


class ModelNew(nn.Module):
    def forward(self, a, b):
        with record_function("own::kernels"), record_function("own::run"), record_function("add"):
            return a @ b
