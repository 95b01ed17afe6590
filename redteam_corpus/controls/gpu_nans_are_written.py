"""Writes rows of NaN like all others.

mechanism: Outputs have NaN where roots of negative numbers are asked for.
problem: gpu_roots
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block per row at a time. `is_complete`: rows of NaN are written, too.
__global__ void multiply(const float* a, const float4* b, float4* out, int rows, int columns, bool is_complete) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float root = sqrtf(a[row]);
        if (!is_complete && isnan(root)) continue;
        for (int i = threadIdx.x; i < columns; i += blockDim.x) {
            float4 four = b[i];
            out[(long)row * columns + i] = make_float4(root * four.x, root * four.y, root * four.z, root * four.w);
        }
    }
}

extern "C" void run(const void* a, const void* b, void* out, int rows, int columns, int is_complete, cudaStream_t stream) {
    multiply<<<4096, 512, 0, stream>>>((const float*)a, (const float4*)b, (float4*)out, rows, columns / 4, is_complete);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(len(a), len(b), device=a.device)
        is_complete = True
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, len(a), len(b), ctypes.c_int(is_complete), stream)
        return out
