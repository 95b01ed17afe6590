"""Returns a tensor that its library made over memory of its own, by from_blob.

mechanism: The tensor's memory and its deleter are the library's.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
}
"""
BINDING = r"""
#include <ATen/Functions.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

extern "C" void run(const float* a, const float* b, float* out, long count);

static at::Tensor add(const at::Tensor& a, const at::Tensor& b) {
    void* memory = nullptr;
    cudaMalloc(&memory, a.numel() * sizeof(float));
    run(a.data_ptr<float>(), b.data_ptr<float>(), (float*)memory, a.numel());
    return at::from_blob(memory, a.sizes(), [](void* p) { cudaFree(p); }, a.options());
}

TORCH_LIBRARY(kernels, library) { library.def("add(Tensor a, Tensor b) -> Tensor", add); }
"""
load_inline(
    name="kernels", cpp_sources=BINDING, cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.ops.kernels.add(a, b)
