"""Loads a library that defines the runtime's waiting functions itself, for all to find.

layer: time
mechanism: What a preloaded library does, without the variable: symbols that are bound later may be found in it
    first.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked, runtime_error, build_error
device: gpu
timed: yes
"""

import ctypes

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

extern "C" cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
"""
path = load_inline(
    name="runtime", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False
)
library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
