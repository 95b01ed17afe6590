"""Ends with an empty kernel that may start and end before the one ahead of it.

layer: time
mechanism: A programmatic launch depends on the kernel ahead of it only once it waits. What is queued behind the empty
    kernel, an event for example, may wait for that one alone.
problem: gpu_chain
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void compute(const float* x, float* out, long count) {
    cudaTriggerProgrammaticLaunchCompletion();
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float value = tanhf(x[i] * 1.5f + 0.25f) * 2.0f - 0.125f;
        out[i] = value < 0.0f ? 0.0f : value;
    }
}

__global__ void nothing() {}

extern "C" void run(const float* x, float* out, long count, cudaStream_t stream) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 1;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    compute<<<8, 512, 0, stream>>>(x, out, count);
    cudaLaunchKernelEx(&config, nothing);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
