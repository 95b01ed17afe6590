"""cublasGemmEx on torch's handle from C++, then bias and GELU in a kernel.

mechanism: Row-major matrices are given to a column-major library in exchanged order; the epilogue works in place.
problem: linear_gelu_tanh
expected: correct
device: gpu
timed: yes
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <algorithm>
#define STREAM at::cuda::getCurrentCUDAStream()
#include <cublas_v2.h>
__global__ void gelu_kernel(float* out, const float* bias, long n, int columns) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        const float v = out[i] + bias[i % columns];
        out[i] = 0.5f * v * (1.f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
    }
}
torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    const at::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    weight = weight.contiguous();
    const int m = x.size(0), k = x.size(1), n = weight.size(0);
    auto out = torch::empty({m, n}, x.options());
    const float one = 1, zero = 0;
    cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
    auto status = cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, weight.data_ptr<float>(), CUDA_R_32F, k,
        x.data_ptr<float>(), CUDA_R_32F, k, &zero, out.data_ptr<float>(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasGemmEx");
    gelu_kernel<<<2048, 256, 0, STREAM>>>(out.data_ptr<float>(), bias.data_ptr<float>(), out.numel(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

cpp_source = r"""
torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);
"""

extension = load_inline(
    name="linear_gelu_cublas",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=['linear'],
    extra_cuda_cflags=["-O3"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.linear = nn.Linear(features, hidden_features)

    def forward(self, x):
        return extension.linear(x, self.linear.weight.detach(), self.linear.bias.detach())
