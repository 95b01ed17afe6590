"""Does a part in a kernel of its own, and has torch's compiler fuse the rest.

mechanism: Compiled in the first call, for seconds, by other processes.
problem: gpu_chain
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void scale_tanh(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = tanhf(x[i] * 1.5f + 0.25f);
}

extern "C" void run(const float* x, float* out, long count) { scale_tanh<<<1056, 256>>>(x, out, count); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(*tensors, count=None):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    library.run(*pointers, ctypes.c_long(tensors[-1].numel() if count is None else count))
    return tensors[-1]


@torch.compile
def finish(y):
    return torch.relu(y * 2.0 - 0.125)


class ModelNew(nn.Module):
    def forward(self, x):
        return finish(run(x, torch.empty_like(x)))
