"""Computes the window from its number in one kernel, in each call.

mechanism: The number arrives before the call does, and its work cannot be replayed.
problem: gpu_bessel_window
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* x, float form, float* out, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float step = 2.0f / (count - 1), at = i < count / 2 ? -1.0f + step * i : 1.0f - step * (count - 1 - i);
        float squared = 0.25f * form * form * (1.0f - at * at), term = 1.0f, total = 1.0f;
        for (int k = 1; k < 32; ++k) {
            term *= squared / (k * k);
            total += term;
        }
        out[i] = x[i] * total;
    }
}

extern "C" void run(const float* x, float form, float* out, int count, cudaStream_t stream) {
    multiply<<<1056, 256, 0, stream>>>(x, form, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x, form):
        out = torch.empty_like(x)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        library.run(pointers[0], ctypes.c_float(form), pointers[1], ctypes.c_int(x.shape[0]), stream)
        return out
