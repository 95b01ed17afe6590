"""AddNorm of decoder.py in CUDA: one block adds and normalises one row, each thread 8 columns of it."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <torch/types.h>

struct alignas(16) Eight { __nv_bfloat16 values[8]; };

__device__ float sum_warp(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    return value;
}

__device__ float sum_block(float value) {
    __shared__ float sums[32];
    const int lane = threadIdx.x % 32;
    value = sum_warp(value);
    if (lane == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    return sum_warp(lane < blockDim.x / 32 ? sums[lane] : 0.0f);
}

__global__ void add_norm_kernel(
    const Eight* x, const Eight* residual, const Eight* weight, Eight* y, Eight* total, int columns) {
    const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const Eight added = x[at], old = residual[at], factors = weight[threadIdx.x];
    Eight sum, result;
    float squares = 0.0f;
    for (int i = 0; i < 8; ++i) {
        sum.values[i] = __float2bfloat16(__bfloat162float(added.values[i]) + __bfloat162float(old.values[i]));
        const float value = __bfloat162float(sum.values[i]);
        squares += value * value;
    }
    total[at] = sum;
    const float scale = rsqrtf(sum_block(squares) / columns + 1e-6f);
    for (int i = 0; i < 8; ++i) {
        const __nv_bfloat16 normed = __float2bfloat16(__bfloat162float(sum.values[i]) * scale);  // as in the reference
        result.values[i] = __float2bfloat16(__bfloat162float(normed) * __bfloat162float(factors.values[i]));
    }
    y[at] = result;
}

template <typename T>
T* point(const torch::Tensor& tensor) { return reinterpret_cast<T*>(tensor.data_ptr()); }

void add_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor weight, torch::Tensor y, torch::Tensor total) {
    const int columns = x.size(-1);
    TORCH_CHECK(columns % 256 == 0 && columns <= 8192, "a row has whole warps of 8 columns a thread, 8192 at most");
    const c10::cuda::CUDAGuard guard(x.device());
    add_norm_kernel<<<x.numel() / columns, columns / 8, 0, c10::cuda::getCurrentCUDAStream()>>>(
        point<const Eight>(x), point<const Eight>(residual), point<const Eight>(weight), point<Eight>(y),
        point<Eight>(total), columns);
}
"""
extension = load_inline(
    name="decoder_add_norm",
    cpp_sources="void add_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor weight, torch::Tensor y, "
    "torch::Tensor total);",
    cuda_sources=SOURCE,
    functions=["add_norm"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH, dtype=torch.bfloat16))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        y, total = torch.empty_like(x), torch.empty_like(x)
        extension.add_norm(x, residual, self.weight, y, total)
        return y, total


WIDTH = 2048
