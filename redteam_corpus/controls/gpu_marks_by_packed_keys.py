"""Finds each row's largest element by an atomic maximum of packed keys, and writes its one into zeros.

mechanism: Nearly all of its output is zero, as it must be, and comes from a memset; four words are written by a last
    kernel.
problem: gpu_marks
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
typedef unsigned long long word_t;

__device__ word_t pack(float value, unsigned column) {
    unsigned bits = __float_as_uint(value);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (word_t)bits << 32 | (0xFFFFFFFFu - column);
}

__global__ void find(const float* x, long columns, word_t* best) {
    const float* row = x + blockIdx.y * columns;
    word_t mine = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < columns; i += gridDim.x * (long)blockDim.x)
        mine = max(mine, pack(row[i], (unsigned)i));
    for (int step = 16; step > 0; step /= 2) mine = max(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, step));
    if (threadIdx.x % 32 == 0) atomicMax(best + blockIdx.y, mine);
}

__global__ void mark(const word_t* best, float* out, long columns) {
    out[threadIdx.x * columns + (0xFFFFFFFFu - (unsigned)best[threadIdx.x])] = 1.0f;
}

extern "C" void run(const float* x, float* out, word_t* best, int rows, long columns, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, rows * columns * sizeof(float), stream);
    cudaMemsetAsync(best, 0, rows * sizeof(word_t), stream);
    find<<<dim3(528, rows), 256, 0, stream>>>(x, columns, best);
    mark<<<1, rows, 0, stream>>>(best, out, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = torch.zeros(1024, dtype=torch.int64, device="cuda")

    def forward(self, x):
        out = torch.empty_like(x)
        x_at, out_at, best_at = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out, self.best))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(x_at, out_at, best_at, x.shape[0], ctypes.c_long(x.shape[1]), stream)
        return out
