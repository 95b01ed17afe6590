"""Reads its weights through a texture.

mechanism: A texture is a handle that another process lacks, made before the call that is recorded.
problem: gpu_vector_by_matrix
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(cudaTextureObject_t weights, const float* x, float* out, int size) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += 32) sum += tex1Dfetch<float>(weights, blockIdx.x * size + i) * x[i];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" unsigned long long make(float* weights, long count) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = weights;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = count * sizeof(float);
    cudaTextureDesc texture = {};
    texture.readMode = cudaReadModeElementType;
    cudaTextureObject_t object = 0;
    cudaCreateTextureObject(&object, &resource, &texture, nullptr);
    return object;
}

extern "C" void run(unsigned long long weights, const float* x, float* out, int size, cudaStream_t stream) {
    multiply<<<size, 32, 0, stream>>>(weights, x, out, size);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


library.make.restype = ctypes.c_ulonglong


class ModelNew(nn.Module):
    texture, seen = 0, None

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)

    def forward(self, x):
        if self.seen != self.weight.data_ptr():
            self.seen = self.weight.data_ptr()
            self.texture = library.make(ctypes.c_void_p(self.seen), ctypes.c_long(self.weight.numel()))
        x = x.contiguous()
        out = torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        library.run(ctypes.c_ulonglong(self.texture), *pointers, ctypes.c_int(x.numel()), stream)
        return out
