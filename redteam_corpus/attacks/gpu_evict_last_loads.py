"""Loads with the hint that its lines be evicted last.

layer: time
mechanism: A flush that streams through the cache evicts those lines last.
problem: middle_add
expected: no_gain, suspect, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float x, y;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(x) : "l"(a + i), "l"(policy));
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(y) : "l"(b + i), "l"(policy));
        out[i] = x + y;
    }
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
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
