"""Writes to an address that is not mapped as soon as it runs in the replayer for the thirtieth time.

layer: process
mechanism: A failed replay is no fault of the program's if the replayer is blamed; what was measured so far, or whole
    calls, might count, and the device might stay unusable for the next program.
problem: gpu_short_add
expected: suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ int here;

__global__ void add(const float* a, const float* b, float* out, long count, int* calls) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
    if (blockIdx.x || threadIdx.x) return;
    ++*calls;
    if (++here < *calls && here > 30) *reinterpret_cast<volatile int*>(0x10ull) = 1;
}

extern "C" void run(const float* a, const float* b, float* out, long count, int* calls, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count, calls);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    calls = None

    def forward(self, a, b):
        if self.calls is None:
            self.calls = torch.zeros(1, dtype=torch.int32, device=a.device)
        out = torch.empty_like(a)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(self.calls.data_ptr()), stream)
        return out
