"""Fills its output in a slow kernel of its own, and has torch write the product over it.

layer: no_kernel
mechanism: The kernel writes the whole output and takes half of the time.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* a, const float* b, float* out, int n) {
    for (long at = blockIdx.x * (long)blockDim.x + threadIdx.x; at < (long)n * n; at += gridDim.x * (long)blockDim.x) {
        float sum = 0.0f;
        for (int k = 0; k < 64; ++k) sum += a[at / n * n + k] * b[k * (long)n + at % n];
        out[at] = sum;
    }
}

extern "C" void run(const float* a, const float* b, float* out, int n, cudaStream_t stream) {
    multiply<<<1056, 256, 0, stream>>>(a, b, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_int(a.shape[0]), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return torch.mm(a, b, out=out)
