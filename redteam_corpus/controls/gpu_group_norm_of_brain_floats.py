"""Normalises groups of bfloat16 in float32: sums and sums of squares in one pass.

mechanism: Pairs of numbers are loaded at once; the variance is a difference of two sums.
problem: brain_group_norm
expected: correct
device: gpu or emulated
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_bf16.h>

__global__ void norm(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                     __nv_bfloat16* out, int channels, int pixels, int groups) {
    __shared__ float sums[256], squares[256];
    const int each = channels / groups, size = each * pixels, group = blockIdx.x % groups;
    const __nv_bfloat162* mine = reinterpret_cast<const __nv_bfloat162*>(x + (long)blockIdx.x * size);
    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
        const float2 pair = __bfloat1622float2(mine[i]);
        sum += pair.x + pair.y;
        square += pair.x * pair.x + pair.y * pair.y;
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
            squares[threadIdx.x] += squares[threadIdx.x + step];
        }
        __syncthreads();
    }
    const float mean = sums[0] / size, scale = rsqrtf(squares[0] / size - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const int channel = group * each + i / pixels;
        const float value = (__bfloat162float(x[(long)blockIdx.x * size + i]) - mean) * scale;
        const float affine = value * __bfloat162float(weight[channel]) + __bfloat162float(bias[channel]);
        out[(long)blockIdx.x * size + i] = __float2bfloat16(affine);
    }
}

extern "C" void run(const void* x, const void* weight, const void* bias, void* out, int batch, int channels,
                    int pixels) {
    typedef __nv_bfloat16 T;
    norm<<<batch * 2, 256>>>((const T*)x, (const T*)weight, (const T*)bias, (T*)out, channels, pixels, 2);
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
        self.norm = nn.GroupNorm(2, size)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        sizes = (x.shape[0], x.shape[1], x[0, 0].numel())
        library.run(*addresses(x, self.norm.weight, self.norm.bias, out), *map(ctypes.c_int, sizes))
        return out
