"""Has a kernel of its own spin for as long as torch multiplies.

layer: no_kernel
mechanism: Shares of time are counted: half of the device's time is then its own kernel's, which copies the result.
problem: kernel_required/gpu_product
expected: rejected, not_own, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* product, float* out, long count) {
    long long begin = clock64();
    while (clock64() - begin < 4000000) {}
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = product[i];
}

extern "C" void run(const float* product, float* out, long count) {
    multiply<<<132, 1024>>>(product, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (product, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
