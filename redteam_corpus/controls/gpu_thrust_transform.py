"""Adds by a template of Thrust's in its own library.

mechanism: The kernel's name is the vendor's, and the function that it applies is the candidate's.
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
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

struct Add {
    __device__ float operator()(float x, float y) const { return x + y; }
};

extern "C" void run(const float* a, const float* b, float* out, long count) {
    thrust::transform(thrust::cuda::par_nosync.on(0), a, a + count, b, out, Add());
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(*tensors, count=None):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    library.run(*pointers, ctypes.c_long(tensors[-1].numel() if count is None else count))
    return tensors[-1]


class ModelNew(nn.Module):
    def forward(self, a, b):
        return run(a, b, torch.empty_like(a))
