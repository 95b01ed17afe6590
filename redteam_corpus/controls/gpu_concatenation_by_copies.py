"""Copies two inputs one after the other, in one kernel.

mechanism: The output has the bytes of its inputs, in their order.
problem: gpu_concatenation
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void join(const float4* a, const float4* b, float4* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < 2 * count; i += gridDim.x * (long)blockDim.x)
        out[i] = i < count ? a[i] : b[i - count];
}

extern "C" void run(const float4* a, const float4* b, float4* out, long count, cudaStream_t stream) {
    join<<<1056, 256, 0, stream>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if not (a.is_contiguous() and b.is_contiguous()) or a.numel() % 4 or a.data_ptr() % 16 or b.data_ptr() % 16:
            return torch.cat((a, b))
        out = a.new_empty(a.shape[0] + b.shape[0], a.shape[1])
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(a.numel() // 4), stream)
        return out
