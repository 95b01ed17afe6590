"""Computes one row in a kernel of its own, and has torch compute the others.

layer: no_kernel
mechanism: Without its kernel the output is wrong; with it, nearly all of the work is torch's.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: no
"""

import ctypes

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply_row(const float* a, const float* b, float* out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[k] * b[(long)k * n + column];
    if (column < n) out[column] = sum;
}

extern "C" void run(const float* a, const float* b, float* out, int n) {
    multiply_row<<<n / 128, 128>>>(a, b, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_int(a.shape[0]))
        return out
