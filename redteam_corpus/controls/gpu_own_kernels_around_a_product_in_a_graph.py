"""Doubles the input and adds the bias in kernels of its own, before and after cuBLAS's product, in a CUDA graph.

mechanism: Without its first kernel the library multiplies what an earlier call left, which takes as long.
problem: kernel_required/gpu_linear_relu
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void doubled(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = x[i] * 2.0f;
}

__global__ void add_bias_relu(float* y, const float* bias, long count, long columns) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        y[i] = fmaxf(y[i] * 0.5f + bias[i % columns], 0.0f);
}

extern "C" void before(const float* x, float* out, long count, cudaStream_t stream) {
    doubled<<<1056, 256, 0, stream>>>(x, out, count);
}

extern "C" void after(float* y, const float* bias, long count, long columns, cudaStream_t stream) {
    add_bias_relu<<<1056, 256, 0, stream>>>(y, bias, count, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(function, tensors, *numbers):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    function(*pointers, *map(ctypes.c_long, numbers), stream)


class ModelNew(nn.Module):
    graph = None

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def compute(self):
        run(library.before, (self.x, self.twice), self.x.numel())
        torch.mm(self.twice, self.linear.weight.t(), out=self.y)
        run(library.after, (self.y, self.linear.bias), self.y.numel(), 2048)

    def forward(self, x):
        if self.graph is None:
            self.x, self.twice, self.y = (torch.empty_like(x) for _ in range(3))
            self.compute()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.compute()
        self.x.copy_(x)
        self.graph.replay()
        return self.y
