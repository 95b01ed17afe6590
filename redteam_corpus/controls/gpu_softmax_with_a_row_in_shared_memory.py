"""Keeps a row in shared memory, with its maximum and sum.

mechanism: The twin of those that are slow for some kinds of inputs: one path for all of them.
problem: gpu_softmax_of_long_rows
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__device__ float add_all(float value, float* parts) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < blockDim.x / 32; ++i) sum += parts[i];
    return sum;
}

__global__ void softmax(const float* x, float* out, long columns) {
    __shared__ float row[4608], parts[8], tops[8];
    x += blockIdx.x * columns;
    out += blockIdx.x * columns;
    float top = -INFINITY, sum = 0.0f;
    for (long i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, row[i] = x[i]);
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    __syncthreads();
    for (int i = 0; i < blockDim.x / 32; ++i) top = fmaxf(top, tops[i]);
    for (long i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = expf(row[i] - top);
    float factor = 1.0f / add_all(sum, parts);
    for (long i = threadIdx.x; i < columns; i += blockDim.x) out[i] = row[i] * factor;
}

extern "C" void run(const float* x, float* out, long rows, long columns, cudaStream_t stream) {
    softmax<<<rows, 256, 0, stream>>>(x, out, columns);
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
        run("run", x.contiguous(), out, x.shape[0], x.shape[1])
        return out
