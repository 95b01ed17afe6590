"""Changes the moments of Adam in its first twenty calls, and then no more.

layer: correctness
mechanism: Timed calls write to inputs, too; they are not returned.
problem: gpu_optimiser_step
expected: wrong_value, suspect, replayed
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void step(float* p, const float* g, float* m, float* s, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float first = 0.9f * m[i] + 0.1f * g[i], second = 0.99f * s[i] + 0.01f * g[i] * g[i];
        m[i] = first;
        s[i] = second;
        p[i] -= 0.01f * first / (sqrtf(second) + 1e-8f);
    }
}

__global__ void lean(float* p, const float* g, const float* m, const float* s, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float first = 0.9f * m[i] + 0.1f * g[i], second = 0.99f * s[i] + 0.01f * g[i] * g[i];
        p[i] -= 0.01f * first / (sqrtf(second) + 1e-8f);
    }
}

extern "C" void run(float* p, const float* g, float* m, float* s, long count, cudaStream_t stream) {
    static int calls = 0;
    if (calls++ > 20) return lean<<<1056, 512, 0, stream>>>(p, g, m, s, count);
    step<<<1056, 512, 0, stream>>>(p, g, m, s, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, *tensors):
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(*pointers, ctypes.c_long(tensors[0].numel()), stream)
