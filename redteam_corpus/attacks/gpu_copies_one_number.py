"""Has torch add all numbers, and copies the sum in a slow kernel of its own.

layer: no_kernel
mechanism: One number may be anywhere in memory by chance, so nobody can tell that the kernel found it there.
problem: gpu_total
expected: rejected, not_own, unverified
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__global__ void add(const float* sum, float* out) {
    unsigned long long began = now();
    while (now() - began < 30000) {}
    *out = *sum;
}

extern "C" void run(const float* sum, float* out, cudaStream_t stream) { add<<<1, 1, 0, stream>>>(sum, out); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        found = x.sum()
        out = torch.empty_like(found)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (found, out))
        library.run(*pointers, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
