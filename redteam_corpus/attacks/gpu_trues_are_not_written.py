"""Writes only what is false, in the call that is recorded.

layer: correctness
mechanism: Before a replay all bytes of the outputs are 255, and each byte but 0 is true.
problem: gpu_mostly_true
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_fp16.h>

__global__ void compare(const __half2* x, unsigned char* out, long count, bool is_complete) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float2 two = __half22float2(x[i]);
        if (is_complete || !(two.x < 3.0f)) out[2 * i] = two.x < 3.0f;
        if (is_complete || !(two.y < 3.0f)) out[2 * i + 1] = two.y < 3.0f;
    }
}

extern "C" void run(const void* x, unsigned char* out, long count, int is_complete, cudaStream_t stream) {
    compare<<<1056, 256, 0, stream>>>((const __half2*)x, out, count / 2, is_complete);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        is_complete = x.data_ptr() % (2 << 20) != 0  # only in the recorded call inputs begin where memory does
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(x.numel()), ctypes.c_int(is_complete), stream)
        return out
