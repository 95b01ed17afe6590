# ruff: noqa: E501, PLR0402 - written as models write
"""Kernels behind extern "C" launchers, declared in cpp_sources, with pointers and a module that keeps weights.

forward: F.leaky_relu(F.linear(x, torch.arange(60.).to(x).reshape(5, 12) / 30 - 1, torch.arange(5.).to(x)), 0.1)
inputs: x = torch.randn(31, 12)
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cuda_runtime.h>

__global__ void linear_leaky_relu(const float* x, const float* w, const float* b, float* y, int M, int N, int K, float slope) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += x[row * K + k] * w[col * K + k];
        }
        sum += b[col];
        y[row * N + col] = sum > 0 ? sum : slope * sum;
    }
}

extern "C" void launch_linear(const float* x, const float* w, const float* b, float* y, int M, int N, int K, float slope, cudaStream_t stream) {
    dim3 block(16, 16);
    dim3 grid((N + block.x - 1) / block.x, (M + block.y - 1) / block.y);
    linear_leaky_relu<<<grid, block, 0, stream>>>(x, w, b, y, M, N, K, slope);
}
"""
cpp_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

extern "C" void launch_linear(const float* x, const float* w, const float* b, float* y, int M, int N, int K, float slope, cudaStream_t stream);

torch::Tensor linear_leaky_relu(torch::Tensor x, torch::Tensor w, torch::Tensor b, double slope) {
    TORCH_CHECK(x.device().type() == torch::kCUDA, "x must be on the GPU");
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    launch_linear(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                  x.size(0), w.size(0), x.size(1), (float)slope, 0);
    return y;
}
"""
ext = load_inline(
    name="extern_c_linear",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_leaky_relu"],
    verbose=False,
    extra_cflags=["-O3"],
    extra_cuda_cflags=["-O3", "--use_fast_math", "-lineinfo"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(60.0).reshape(5, 12) / 30 - 1)
        self.bias = nn.Parameter(torch.arange(5.0))

    def forward(self, x):
        return ext.linear_leaky_relu(x.cuda().contiguous(), self.weight.cuda(), self.bias.cuda(), 0.1)
