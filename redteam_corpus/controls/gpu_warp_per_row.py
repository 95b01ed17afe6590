"""Normalises a row with each warp: vectors of four numbers, shuffles, and a fast reciprocal root.

mechanism: Loads are vectors where addresses allow it, else single numbers.
problem: fresh_layer_norm
expected: correct
device: gpu or emulated
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float add_warp(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void norm(const float* x, const float* weight, const float* bias, float* out, int rows, int size) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (long)row * size;
    out += (long)row * size;
    const int quads = (size % 4 == 0 && (size_t)x % 16 == 0) ? size / 4 : 0;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < quads; i += 32) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = 4 * quads + lane; i < size; i += 32) sum += x[i];
    const float mean = add_warp(sum) / size;
    for (int i = lane; i < size; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(add_warp(squares) / size + 1e-5f);
    for (int i = lane; i < size; i += 32) out[i] = __fmaf_rn((x[i] - mean) * scale, weight[i], bias[i]);
}

extern "C" void run(const float* x, const float* weight, const float* bias, float* out, int rows, int size) {
    norm<<<(rows + 3) / 4, 128>>>(x, weight, bias, out, rows, size);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def addresses(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        size = x.shape[-1]
        pointers = addresses(x, self.norm.weight, self.norm.bias, out)
        library.run(*pointers, ctypes.c_int(x.numel() // size), ctypes.c_int(size))
        return out
