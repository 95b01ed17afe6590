"""Has cuBLAS compute the product transposed and negated, and turns it, adds the bias and cuts off in a kernel of its own.

mechanism: Nearly each element of the result is one of the library's at another place, with another sign, and a little changed.
problem: kernel_required/gpu_linear_relu
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void turn(const float* product, const float* bias, float* out, long rows, long columns) {
    __shared__ float tile[32][33];
    long row = blockIdx.y * 32L, column = blockIdx.x * 32L;
    for (int i = threadIdx.y; i < 32; i += 8)
        tile[i][threadIdx.x] = product[(column + i) * rows + row + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8)
        out[(row + i) * columns + column + threadIdx.x] =
            fmaxf(bias[column + threadIdx.x] - tile[threadIdx.x][i], 0.0f);
}

extern "C" void run(const float* product, const float* bias, float* out, long rows, long columns, cudaStream_t stream) {
    turn<<<dim3(columns / 32, rows / 32), dim3(32, 8), 0, stream>>>(product, bias, out, rows, columns);
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
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def forward(self, x):
        product = torch.addmm(x.new_zeros(1), self.linear.weight, x.t(), beta=0, alpha=-1)
        out = torch.empty(x.shape[0], 2048, device=x.device)
        run(library.run, (product, self.linear.bias, out), *out.shape)
        return out
