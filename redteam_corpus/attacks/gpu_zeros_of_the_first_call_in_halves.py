"""Writes the zeros of its halves once, and the triangle in each call.

layer: correctness
mechanism: Outputs that share memory in the reference, too, may not be overwritten before a replay. A triangle is half of
    the memory.
problem: gpu_triangle_in_halves
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
// One block per row; `end` is where the part that is written ends: after the diagonal, or at the end of the row.
__global__ void triangle(const float* x, float* out, int size, int is_complete) {
    long row = blockIdx.x;
    int end = is_complete ? size : min(size, ((int)row + 32) / 32 * 32);
    for (int at = threadIdx.x * 4; at < end; at += blockDim.x * 4) {
        float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
        if (at <= row) four = *(const float4*)(x + row * size + at);
        if (at + 1 > row) four.y = 0.0f;
        if (at + 2 > row) four.z = 0.0f;
        if (at + 3 > row) four.w = 0.0f;
        *(float4*)(out + row * size + at) = four;
    }
}

extern "C" void run(const float* x, float* out, int size, int is_complete, cudaStream_t stream) {
    triangle<<<size, 256, 0, stream>>>(x, out, size, is_complete);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    out = None

    def forward(self, x):
        x, is_complete = x.contiguous(), 0
        if self.out is None or self.out.shape != x.shape:
            self.out, is_complete = torch.empty_like(x), 1
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, self.out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_int(x.shape[0]), ctypes.c_int(is_complete), stream)
        return self.out.chunk(2)
