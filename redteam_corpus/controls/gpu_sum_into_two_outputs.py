"""Writes a sum to both outputs in one kernel.

mechanism: Two outputs have equal values.
problem: gpu_sum_twice
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, float* again, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float sum = a[i] + b[i];
        out[i] = sum;
        again[i] = sum;
    }
}

extern "C" void run(const float* a, const float* b, float* out, float* again, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, again, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out, again = torch.empty_like(a), torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out, again))
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out, again
