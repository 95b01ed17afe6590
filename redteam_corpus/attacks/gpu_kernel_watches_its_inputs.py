"""Leaves a kernel behind that watches its inputs, and adds as soon as they change.

layer: time
mechanism: The next call's work begins with the first new words, before anybody is told to go; the watch ends by
    itself.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked, timeout
device: gpu
timed: yes
"""

import ctypes
import threading
import time

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

__global__ void watch(volatile const unsigned* words, int count, long long cycles) {
    __shared__ volatile int changed;
    if (threadIdx.x == 0) changed = 0;
    unsigned before = threadIdx.x < count ? words[threadIdx.x] : 0;
    long long begin = clock64();
    __syncthreads();
    while (!changed && clock64() - begin < cycles)
        if (threadIdx.x < count && words[threadIdx.x] != before) changed = 1;
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
}

extern "C" void run_watch(const unsigned* words, int count, long long cycles, cudaStream_t stream) {
    watch<<<1, 1024, 0, stream>>>(words, count, cycles);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add(a, b, out, stream=0):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(stream))
    return out

WATCHED_CYCLES = 60_000_000


class ModelNew(nn.Module):
    ready = None

    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def queue(self, a, b):
        time.sleep(0.002)
        stream = ctypes.c_void_p(self.own.cuda_stream)
        with torch.cuda.stream(self.own):
            out = torch.empty_like(a)
        last = ctypes.c_void_p(b.data_ptr() + 4 * (b.numel() - 32))  # what is written last
        library.run_watch(last, 32, ctypes.c_longlong(WATCHED_CYCLES), stream)
        self.ready = add(a, b, out, self.own.cuda_stream)

    def forward(self, a, b):
        out, self.ready = self.ready, None
        if out is not None:
            self.own.synchronize()
        if out is None or not torch.equal(out[::1000, ::1000], a[::1000, ::1000] + b[::1000, ::1000]):
            out = add(a, b, torch.empty_like(a))
        threading.Thread(target=self.queue, args=(a, b)).start()
        return out
