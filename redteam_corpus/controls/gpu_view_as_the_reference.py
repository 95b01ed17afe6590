"""Returns a view of its input, as the reference does, and sums its columns in a kernel.

mechanism: An output lies in the memory of the inputs, in the recorded call, too.
problem: gpu_view_and_sums
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* x, float* out, int rows, int columns) {
    int column = blockIdx.x * 32 + threadIdx.x;
    __shared__ float parts[32][33];
    float sum = 0.0f;
    if (column < columns)
        for (int row = threadIdx.y; row < rows; row += 32) sum += x[(long)row * columns + column];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= columns) return;
    sum = 0.0f;
    for (int i = 0; i < 32; ++i) sum += parts[i][threadIdx.x];
    out[column] = sum;
}

extern "C" void run(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    add<<<(columns + 31) / 32, dim3(32, 32), 0, stream>>>(x, out, rows, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        whole = x.contiguous()
        out = x.new_empty(x.shape[1])
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (whole, out)]
        sizes = map(ctypes.c_int, x.shape)
        library.run(*pointers, *sizes, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return x.t(), out
