"""Eliminates with the largest element of a column as divisor.

mechanism: Elimination of both triangles at once is a little less exact than a factorisation.
problem: gpu_inverses
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
constexpr int kSize = 64;

__global__ void invert(const float* x, float* out, int with_pivots) {
    __shared__ float left[kSize][2 * kSize + 1], factors[kSize];
    __shared__ int chosen;
    x += blockIdx.x * (long)(kSize * kSize);
    out += blockIdx.x * (long)(kSize * kSize);
    for (int i = threadIdx.x; i < kSize * 2 * kSize; i += blockDim.x) {
        int row = i / (2 * kSize), column = i % (2 * kSize);
        left[row][column] = column < kSize ? x[row * kSize + column] : float(column - kSize == row);
    }
    __syncthreads();
    for (int step = 0; step < kSize; ++step) {
        if (with_pivots) {
            if (threadIdx.x < 32) {
                float best = -1.0f;
                int at = step;
                for (int row = step + threadIdx.x; row < kSize; row += 32)
                    if (fabsf(left[row][step]) > best) best = fabsf(left[row][step]), at = row;
                for (int far = 16; far; far /= 2) {
                    float other = __shfl_xor_sync(0xffffffffu, best, far);
                    int place = __shfl_xor_sync(0xffffffffu, at, far);
                    if (other > best || (other == best && place < at)) best = other, at = place;
                }
                if (!threadIdx.x) chosen = at;
            }
            __syncthreads();
            int row = chosen;
            if (row != step && threadIdx.x < 2 * kSize) {
                float kept = left[step][threadIdx.x];
                left[step][threadIdx.x] = left[row][threadIdx.x];
                left[row][threadIdx.x] = kept;
            }
            __syncthreads();
        }
        float divisor = left[step][step];
        __syncthreads();
        if (threadIdx.x < 2 * kSize) left[step][threadIdx.x] /= divisor;
        if (threadIdx.x < kSize) factors[threadIdx.x] = threadIdx.x == step ? 0.0f : left[threadIdx.x][step];
        __syncthreads();
        for (int i = threadIdx.x; i < kSize * 2 * kSize; i += blockDim.x)
            left[i / (2 * kSize)][i % (2 * kSize)] -= factors[i / (2 * kSize)] * left[step][i % (2 * kSize)];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < kSize * kSize; i += blockDim.x) out[i] = left[i / kSize][kSize + i % kSize];
}

extern "C" void run(const float* x, float* out, long count, cudaStream_t stream) {
    invert<<<count, 256, 0, stream>>>(x, out, 1);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        run("run", x.contiguous(), out, x.shape[0])
        return out
