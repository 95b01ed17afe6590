"""Hands its work to a thread that launches it on the default stream of that thread.

layer: time
mechanism: Each thread has a default stream of its own, if it asks for it; the caller's has nothing to wait for.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import ctypes
import queue
import threading

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

PER_THREAD = 2
jobs = queue.SimpleQueue()


def work():
    while True:
        add(*jobs.get(), PER_THREAD)


threading.Thread(target=work, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        jobs.put((a, b, out))
        return out
