"""Takes the signs of its weights where it multiplies, and adds parts in order.

mechanism: Signs are nowhere in memory, and weights are read once.
problem: gpu_vector_by_signs
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* x, const float* weight, float* parts, int width, int inner) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * inner;
    float sum = 0.0f;
    for (int i = first; i < first + inner; ++i) {
        float one = weight[(long)i * width + column];
        sum += one > 0.0f ? x[i] : one < 0.0f ? -x[i] : 0.0f;
    }
    parts[(long)blockIdx.y * width + column] = sum;
}

__global__ void finish(const float* parts, float* out, int width, int count) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += parts[(long)i * width + column];
    out[column] = sum;
}

extern "C" void run(const float* x, const float* weight, float* parts, float* out, int width, cudaStream_t stream) {
    multiply<<<dim3(width / 256, 64), 256, 0, stream>>>(x, weight, parts, width, width / 64);
    finish<<<width / 256, 256, 0, stream>>>(parts, out, width, 64);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        width = self.weight.shape[0]
        parts, out = x.new_empty(64, width), x.new_empty(1, width)
        pointers = (ctypes.c_void_p(one.data_ptr()) for one in (x, self.weight, parts, out))
        library.run(*pointers, ctypes.c_int(width), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return out
