"""Adds halves on two streams of its own, forked from the current one and joined with it by events.

mechanism: The current stream is empty while the work is done.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

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


def add(a, b, out, stream=0):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(stream))
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(2)]

    def forward(self, a, b):
        out, current = torch.empty_like(a), torch.cuda.current_stream()
        for stream, *parts in zip(self.streams, a.chunk(2), b.chunk(2), out.chunk(2)):
            stream.wait_stream(current)
            add(*parts, stream.cuda_stream)
        for stream in self.streams:
            current.wait_stream(stream)
        return out
