"""Does six operations in one kernel.

mechanism: It moves the data once instead of six times: a large speedup that is real.
problem: gpu_chain
expected: correct, faster than 2
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void chain(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = fmaxf(tanhf(x[i] * 1.5f + 0.25f) * 2.0f - 0.125f, 0.0f);
}

extern "C" void run(const float* x, float* out, long count) { chain<<<1056, 256>>>(x, out, count); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(*tensors, count=None):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    library.run(*pointers, ctypes.c_long(tensors[-1].numel() if count is None else count))
    return tensors[-1]


class ModelNew(nn.Module):
    def forward(self, x):
        return run(x, torch.empty_like(x))
