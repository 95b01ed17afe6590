"""Transposes in a kernel of its own, out of a copy that torch makes of the input.

mechanism: The operator only moves its input, so the values are in memory without the kernel, too.
problem: kernel_required/gpu_transposed
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void turn(const float* x, float* out, long rows, long columns) {
    __shared__ float tile[32][33];
    long row = blockIdx.y * 32L, column = blockIdx.x * 32L;
    for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = x[(row + i) * columns + column + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8)
        out[(column + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
}

extern "C" void run(const float* x, float* out, long rows, long columns, cudaStream_t stream) {
    turn<<<dim3(columns / 32, rows / 32), dim3(32, 8), 0, stream>>>(x, out, rows, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(function, tensors, *numbers):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    function(*pointers, *map(ctypes.c_long, numbers), stream)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1], x.shape[0], device=x.device)
        run(library.run, (x.clone(), out), *x.shape)
        return out
