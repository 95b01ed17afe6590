"""Adds in a second context of its own, which waiting for the first one does not wait for.

layer: time
mechanism: cudaDeviceSynchronize waits for the current context; copies between contexts bring inputs there and
    results back.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked, runtime_error, out_of_memory
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

library.run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p)
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


class ModelNew(nn.Module):
    context = None

    def prepare(self, size_bytes):
        self.first, self.context, self.stream = (ctypes.c_void_p() for _ in range(3))
        call("cuCtxGetCurrent", ctypes.byref(self.first))
        call("cuCtxCreate_v2", ctypes.byref(self.context), 0, 0)
        call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.places = [ctypes.c_void_p() for _ in range(3)]
        for place in self.places:
            call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size_bytes))
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def copy(self, to, to_context, source, from_context, size_bytes):
        size = ctypes.c_size_t(size_bytes)
        call("cuMemcpyPeerAsync", to, to_context, source, from_context, size, self.stream)

    def forward(self, a, b):
        out, size_bytes = torch.empty_like(a), a.numel() * 4
        if self.context is None:
            self.prepare(size_bytes)
        call("cuCtxPushCurrent_v2", self.context)
        for place, tensor in zip(self.places, (a, b)):
            self.copy(place, self.context, ctypes.c_void_p(tensor.data_ptr()), self.first, size_bytes)
        library.run(*self.places, out.numel(), self.stream)
        self.copy(ctypes.c_void_p(out.data_ptr()), self.first, self.places[2], self.context, size_bytes)
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return out
