"""Applies functions whose addresses its first call put into device memory.

mechanism: Addresses of code differ between processes, so that a replay of it calls nothing or something else.
problem: gpu_short_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float plus(float a, float b) { return a + b; }

using Function = float (*)(float, float);

__global__ void prepare(Function* table) { *table = plus; }

__global__ void apply(Function* table, const float* a, const float* b, float* out, long count) {
    Function function = *table;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = function(a[i], b[i]);
}

extern "C" void start(Function* table, cudaStream_t stream) { prepare<<<1, 1, 0, stream>>>(table); }

extern "C" void run(Function* table, const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    apply<<<1056, 256, 0, stream>>>(table, a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    table = None

    def forward(self, a, b):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if self.table is None:
            self.table = torch.zeros(1, dtype=torch.int64, device=a.device)
            library.start(ctypes.c_void_p(self.table.data_ptr()), stream)
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (self.table, a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()), stream)
        return out
