"""Orders two streams of its own by words in device memory, and joins them with the current one.

mechanism: Waiting for words in memory is how work is queued ahead; here the words are its own, and the wait ends in
    the call.
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
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add(a, b, out, stream=0):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(stream))
    return out

driver = ctypes.CDLL("libcuda.so.1")
EQUAL = 1


class ModelNew(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.cuda.Stream(), torch.cuda.Stream()
        self.word = torch.zeros(1, dtype=torch.int32, device="cuda")

    def forward(self, a, b):
        self.calls += 1
        out, current = torch.empty_like(a), torch.cuda.current_stream()
        self.first.wait_stream(current)
        self.second.wait_stream(current)
        word, value = ctypes.c_uint64(self.word.data_ptr()), ctypes.c_uint32(self.calls)
        half = a.shape[0] // 2
        add(a[:half], b[:half], out[:half], self.first.cuda_stream)
        driver.cuStreamWriteValue32_v2(ctypes.c_void_p(self.first.cuda_stream), word, value, 0)
        driver.cuStreamWaitValue32_v2(ctypes.c_void_p(self.second.cuda_stream), word, value, EQUAL)
        add(a[half:], b[half:], out[half:], self.second.cuda_stream)
        current.wait_stream(self.second)
        return out
