"""Captures its own kernel at the first call, and replays it with inputs copied in and the output copied out.

mechanism: Replays launch what no code of the call names, and its memory is kept.
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
    graph = None

    def capture(self, a, b):
        self.inputs, self.out = (a.clone(), b.clone()), torch.empty_like(a)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            add(*self.inputs, self.out, torch.cuda.current_stream().cuda_stream)

    def forward(self, a, b):
        if self.graph is None:
            self.capture(a, b)
        self.inputs[0].copy_(a)
        self.inputs[1].copy_(b)
        self.graph.replay()
        return self.out.clone()
