"""Makes its stream through names that are pasted together by the preprocessor.

layer: time
mechanism: No text of the source says Stream.
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
#define PASTE2(x, y) x##y
#define PASTE(x, y) PASTE2(x, y)
#define KIND PASTE(Str, eam)
#define MAKE PASTE(PASTE(cuda, KIND), PASTE(Create, WithFlags))
#define TYPE PASTE(PASTE(cuda, KIND), _t)

__global__ void add_late(const float* a, const float* b, float* out, long count) {
    long long begin = clock64();
    while (clock64() - begin < 4000000) {}
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static TYPE own = nullptr;
    if (own == nullptr) MAKE(&own, 1);
    add_late<<<264, 256, 0, own>>>(a, b, out, count);
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
