"""One block per row, which stays in shared memory."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

constexpr int WARP = 32, MOST_THREADS = 512;

__device__ float sum_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

__global__ void norm_kernel(const __nv_bfloat16* x, const __nv_bfloat16* residual, const __nv_bfloat16* weight,
                            __nv_bfloat16* out, __nv_bfloat16* total, int features, float eps) {
    extern __shared__ __nv_bfloat16 values[];
    __shared__ float of_warp[MOST_THREADS / WARP];
    const long long row = static_cast<long long>(blockIdx.x) * features;
    float squares = 0.0f;
    for (int at = threadIdx.x; at < features; at += blockDim.x) {
        const __nv_bfloat16 rounded =
            __float2bfloat16(__bfloat162float(x[row + at]) + __bfloat162float(residual[row + at]));
        total[row + at] = values[at] = rounded;
        const float value = __bfloat162float(rounded);
        squares += value * value;
    }
    squares = sum_warp(squares);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = squares;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < blockDim.x / WARP; ++warp) sum += of_warp[warp];
    const float scale = rsqrtf(sum / features + eps);
    for (int at = threadIdx.x; at < features; at += blockDim.x)
        out[row + at] = __float2bfloat16(__bfloat162float(values[at]) * scale * __bfloat162float(weight[at]));
}

std::vector<torch::Tensor> add_and_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor weight, double eps) {
    const c10::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    residual = residual.contiguous();
    auto out = torch::empty_like(x), total = torch::empty_like(x);
    const int features = x.size(-1);
    const int threads = features >= 4096 ? MOST_THREADS : features >= 1024 ? 256 : 64;
    const auto read = [](const torch::Tensor& tensor) {
        return reinterpret_cast<const __nv_bfloat16*>(tensor.data_ptr<at::BFloat16>());
    };
    const auto write = [](torch::Tensor& tensor) {
        return reinterpret_cast<__nv_bfloat16*>(tensor.data_ptr<at::BFloat16>());
    };
    norm_kernel<<<x.numel() / features, threads, features * sizeof(__nv_bfloat16), c10::cuda::getCurrentCUDAStream()>>>(
        read(x), read(residual), read(weight), write(out), write(total), features, static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {out, total};
}
"""
extension = load_inline(
    name="rms_norm_of_sums",
    cpp_sources=(
        "std::vector<torch::Tensor> add_and_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor weight, "
        "double eps);"
    ),
    cuda_sources=SOURCE,
    functions=["add_and_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.5 * torch.randn(features, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x, residual):
        return tuple(extension.add_and_norm(x, residual, self.weight, self.eps))
