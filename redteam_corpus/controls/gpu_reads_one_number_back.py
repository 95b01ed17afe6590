"""Adds in a kernel of its own, and reads one number back to check it.

mechanism: The twin of gpu_reads_back_and_forges_its_profile: its work cannot be replayed, and its kernel is its own.
problem: kernel_required/gpu_add
expected: correct
device: gpu
timed: yes
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

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
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
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if abs(float(out[0, 0]) - float(a[0, 0]) - float(b[0, 0])) > 1e-3 * abs(float(out[0, 0])) + 1e-3:
            raise RuntimeError("the sum is wrong")
        return out
