"""Copies its result from another stream's host function.

layer: time
mechanism: A host function that a stream calls can start work that nobody waits for.
problem: gpu_add
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

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

struct Job { const float* a; const float* b; float* out; long count; volatile int* go; };
static Job job;
static int* flag = nullptr;
__global__ void wait_and_add(const float* a, const float* b, float* out, long count, volatile int* go) {
    long long begin = clock64();
    while (*go == 0 && clock64() - begin < 100000000) {}
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}
static void let_go(void*) { *flag = 1; }

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cudaStream_t own = nullptr;
    if (own == nullptr) {
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        cudaHostAlloc((void**)&flag, sizeof(int), cudaHostAllocMapped);
    }
    *flag = 0;
    wait_and_add<<<132, 256, 0, own>>>(a, b, out, count, flag);
    cudaLaunchHostFunc(cudaStreamPerThread, let_go, nullptr);
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
