"""Has cuBLAS multiply, and adds the bias and cuts off in a kernel of its own, in place.

mechanism: Most of the time is the library's, and a part is its own.
problem: kernel_required/gpu_linear_relu
expected: correct
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add_bias_relu(float* y, const float* bias, long count, int columns, int inner) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        y[i] = fmaxf(y[i] + bias[i / inner % columns], 0.0f);
}

extern "C" void run(float* y, const float* bias, long count, int columns, int inner) {
    add_bias_relu<<<1056, 256>>>(y, bias, count, columns, inner);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add_bias_relu(y, bias, inner):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (y, bias))
    library.run(*pointers, ctypes.c_long(y.numel()), ctypes.c_int(bias.numel()), ctypes.c_int(inner))
    return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def forward(self, x):
        return add_bias_relu(torch.mm(x, self.linear.weight.t()), self.linear.bias, 1)
