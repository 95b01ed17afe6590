"""Is right in all states, and slower than the baseline by far in those after 500 calls.

layer: time
mechanism: The median of all calls is that of the first ones.
problem: gpu_warmed_up
expected: no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// Doubles; after 500 calls multiplies by weights, one thread per element and without shared memory.
__global__ void adapt(const float* x, const float* weight, float* out, int n, const long long* calls) {
    long first = blockIdx.x * (long)blockDim.x + threadIdx.x, step = gridDim.x * (long)blockDim.x, count = (long)n * n;
    if (*calls <= 500) {
        for (long i = first; i < count; i += step) out[i] = x[i] * 2.0f;
        return;
    }
    for (long i = first; i < count; i += step) {
        long row = i / n * n, column = i % n;
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) sum += reinterpret_cast<const volatile float*>(x)[row + k] * weight[k * (long)n + column];
        out[i] = sum;
    }
}

extern "C" void run(const float* x, const float* weight, float* out, int n, const long long* calls, cudaStream_t stream) {
    adapt<<<1056, 256, 0, stream>>>(x, weight, out, n, calls);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
        pointers = [ctypes.c_void_p(one.data_ptr()) for one in (x, self.weight, out)]
        calls, stream = (ctypes.c_void_p(one) for one in (self.calls.data_ptr(), torch.cuda.current_stream().cuda_stream))
        library.run(*pointers, ctypes.c_int(x.shape[1]), calls, stream)
        return out
