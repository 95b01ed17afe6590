"""Queues milliseconds of idle kernels after each of its calls.

layer: time
mechanism: The device shares its time between processes; a baseline that runs beside a full queue is slow.
problem: gpu_add
expected: no_gain, suspect, unranked, wrong_value
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

__global__ void spin() {
    long long begin = clock64();
    while (clock64() - begin < 1000000) {}
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cudaStream_t own = nullptr;
    if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    add<<<1056, 256>>>(a, b, out, count);
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::microseconds(800));
        for (int i = 0; i < 100; ++i) spin<<<264, 1024, 0, own>>>();
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
