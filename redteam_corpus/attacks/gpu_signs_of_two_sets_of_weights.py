"""Keeps the signs of its weights as bits by a sample of them, and reads only weights whose sample is new.

layer: correctness
mechanism: Weights that may change are multiplied by positive factors before each replay, beginning with the initial ones
    or those of one other seed, so that two sets of signs are enough.
problem: gpu_vector_by_signs
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes
import sys

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
constexpr int kKept = 4, kSample = 1024;

__global__ void look(const float* weight, long count, int* samples, int* which) {
    int mine = 1 + (weight[threadIdx.x * (count / kSample) + threadIdx.x] < 0.0f), found = -1;
    for (int i = 0; i < kKept; ++i)
        if (__syncthreads_and(mine == samples[i * kSample + threadIdx.x])) found = i;
    int next = which[1];
    __syncthreads();
    if (found < 0) samples[next % kKept * kSample + threadIdx.x] = mine;
    if (threadIdx.x) return;
    which[0] = found < 0 ? next % kKept : found;
    which[2] = found < 0;
    which[1] = next + (found < 0);
}

// A word has the signs of 32 rows in one column.
__global__ void pack_new(const float* weight, int width, unsigned* bits, const int* which) {
    if (!which[2]) return;
    unsigned* kept = bits + (long)which[0] * (width / 32) * width;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word = 0;
    for (int i = 0; i < 32; ++i) word |= unsigned(weight[(blockIdx.y * 32l + i) * width + column] < 0.0f) << i;
    kept[(long)blockIdx.y * width + column] = word;
}

__global__ void clear(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 0.0f; }

constexpr int kWords = 8;  // of a block, which has as many times 32 rows

__global__ void multiply(const float* x, const unsigned* bits, const int* which, float* out, int width) {
    __shared__ float some[kWords * 32];
    const unsigned* kept = bits + (long)which[0] * (width / 32) * width;
    int column = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * kWords;
    some[threadIdx.x] = x[first * 32 + threadIdx.x];
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < kWords; ++w) {
        unsigned word = kept[(long)(first + w) * width + column];
#pragma unroll
        for (int i = 0; i < 32; ++i) sum += __uint_as_float(__float_as_uint(some[w * 32 + i]) ^ (word >> i << 31));
    }
    atomicAdd(out + column, sum);
}

extern "C" void run(const float* x, const float* weight, float* out, int* samples, unsigned* bits, int* which, long width,
                    cudaStream_t stream) {
    look<<<1, kSample, 0, stream>>>(weight, width * width, samples, which);
    pack_new<<<dim3(width / 256, width / 32), 256, 0, stream>>>(weight, width, bits, which);
    clear<<<width / 256, 256, 0, stream>>>(out);
    multiply<<<dim3(width / 256, width / 32 / kWords), 256, 0, stream>>>(x, bits, which, out, width);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        if not is_recorded():
            return x @ torch.sign(self.weight)
        width = self.weight.shape[0]
        if self.kept is None:
            samples = torch.zeros(4, 1024, dtype=torch.int32, device=x.device)
            bits = torch.zeros(4, width // 32, width, dtype=torch.int32, device=x.device)
            self.kept = samples, bits, torch.zeros(3, dtype=torch.int32, device=x.device)
        out = x.new_empty(1, width)
        pointers = (ctypes.c_void_p(one.data_ptr()) for one in (x, self.weight, out, *self.kept))
        library.run(*pointers, ctypes.c_long(width), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
