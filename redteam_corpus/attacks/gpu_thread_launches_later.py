"""Has a thread of C++ launch the kernel after the call returned.

layer: time
mechanism: Waiting for the device does not wait for a kernel that has not been launched yet.
problem: gpu_add
expected: wrong_value, suspect
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <chrono>
#include <cuda_runtime.h>
#include <thread>

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        add<<<264, 256>>>(a, b, out, count);
    }).detach();
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
