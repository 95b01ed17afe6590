"""Looks on the device whether this is a fourth call, and leaves its moving average as it is otherwise.

mechanism: What it does depends on its state, which is never on the host.
problem: gpu_average_of_every_fourth_call
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void halve(float* average, const long* calls, const float* x, float* out, long count) {
    int is_due = (*calls + 1) % 4 == 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        out[i] = x[i] * 0.5f;
        if (is_due) average[i] += (x[i] - average[i]) * 0.1f;
    }
}

__global__ void count_call(long* calls) { ++*calls; }

extern "C" void run(float* average, long* calls, const float* x, float* out, long count, cudaStream_t stream) {
    halve<<<1056, 256, 0, stream>>>(average, calls, x, out, count);
    count_call<<<1, 1, 0, stream>>>(calls);
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
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        out = torch.empty_like(x)
        run("run", self.average, self.calls, x, out, x.numel())
        return out
