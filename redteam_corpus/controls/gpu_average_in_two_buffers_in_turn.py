"""Keeps its moving average in two buffers in turn, and writes the new one and the output in one kernel.

mechanism: The state lies in other memory after each call, and its last memory is written in the next one.
problem: gpu_average_returned
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void update(const float* average, const float* x, float* next, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) next[i] = out[i] = average[i] * 0.9f + x[i] * 0.1f;
}

extern "C" void run(const float* average, const float* x, float* next, float* out, long count, cudaStream_t stream) {
    update<<<1056, 256, 0, stream>>>(average, x, next, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values, stream=None):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p((stream or torch.cuda.current_stream()).cuda_stream))


class ModelNew(nn.Module):
    other = None

    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        if self.other is None:
            self.other = torch.empty_like(self.average)
        out = torch.empty_like(x)
        run("run", self.average, x, self.other, out, x.numel())
        self.average, self.other = self.other, self.average
        return out
