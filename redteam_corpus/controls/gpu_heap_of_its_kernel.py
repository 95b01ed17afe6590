"""Keeps scratch memory that its kernel took from the device's heap.

mechanism: The heap is the driver's, which no other process maps; a variable tells whether memory was taken.
problem: gpu_short_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float* scratch;

__global__ void prepare() {
    if (!scratch) scratch = static_cast<float*>(malloc(256 * sizeof(float)));
}

__global__ void add(const float* a, const float* b, float* out, long count) {
    if (blockIdx.x == 0 && scratch) scratch[threadIdx.x] = a[threadIdx.x];
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    prepare<<<1, 1, 0, stream>>>();
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
        return out
