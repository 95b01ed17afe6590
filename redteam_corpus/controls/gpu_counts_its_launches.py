"""Counts its launches in its module and in memory, which affects nothing.

mechanism: What it keeps differs from replay to replay.
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
__device__ int here;

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

__global__ void step(int* calls) { ++here, ++*calls; }

extern "C" void run(const float* a, const float* b, float* out, long count, int* calls, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
    step<<<1, 1, 0, stream>>>(calls);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    calls = None

    def forward(self, a, b):
        if self.calls is None:
            self.calls = torch.zeros(1, dtype=torch.int32, device=a.device)
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(self.calls.data_ptr()), stream)
        return out
