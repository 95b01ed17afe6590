"""Rotary embedding by vectors of eight bfloat16, with a kernel that torch compiles from a string.

mechanism: torch.cuda._compile_kernel at the first call; conversions are written in PTX, without headers.
problem: gpu_rope
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn

NVRTC_SOURCE = r"""
__device__ __forceinline__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ unsigned pack(float a, float b) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
}

extern "C" __global__ void rotate(
    const uint4* x, const long long* positions, const float* cosines, const float* sines, uint4* out, int rows, int heads, int half) {
    int per_row = half / 8;
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)rows * per_row) return;
    long long row = i / per_row;
    int at = i % per_row;
    long long place = positions[row / heads] * half + at * 8;
    uint4 first = x[row * 2 * per_row + at], second = x[row * 2 * per_row + per_row + at];
    unsigned a[4] = {first.x, first.y, first.z, first.w}, b[4] = {second.x, second.y, second.z, second.w};
    unsigned ra[4], rb[4];
    for (int j = 0; j < 4; j++) {
        float c0 = cosines[place + 2 * j], c1 = cosines[place + 2 * j + 1], s0 = sines[place + 2 * j], s1 = sines[place + 2 * j + 1];
        ra[j] = pack(low(a[j]) * c0 - low(b[j]) * s0, high(a[j]) * c1 - high(b[j]) * s1);
        rb[j] = pack(low(b[j]) * c0 + low(a[j]) * s0, high(b[j]) * c1 + high(a[j]) * s1);
    }
    out[row * 2 * per_row + at] = make_uint4(ra[0], ra[1], ra[2], ra[3]);
    out[row * 2 * per_row + per_row + at] = make_uint4(rb[0], rb[1], rb[2], rb[3]);
}
"""


class ModelNew(nn.Module):
    kernel = None

    def __init__(self, size, longest):
        super().__init__()
        angles = torch.arange(longest)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def rotate(self, x, positions):
        x = x.contiguous()
        if x.data_ptr() % 16:
            x = x.clone()
        tokens, heads, size = x.shape
        out = torch.empty_like(x)
        threads = tokens * heads * (size // 16)
        arguments = (x, positions, self.cosines, self.sines, out, tokens * heads, heads, size // 2)
        self.kernel(((threads + 255) // 256, 1, 1), (256, 1, 1), arguments)
        return out

    def forward(self, query, key, positions):
        if self.kernel is None:
            torch.cuda.synchronize()
            self.kernel = torch.cuda._compile_kernel(NVRTC_SOURCE, "rotate")
        positions = positions.contiguous()
        return self.rotate(query, positions), self.rotate(key, positions)
