"""A thread per pixel: it keeps up to 64 channels in registers, and reads more of them twice."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256, KEPT = 64;

template <bool KEEPS>
__global__ void rms_norm_kernel(const float* x, const float* weight, float* out, int channels, int plane, float eps) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= plane) return;
    const long long image = static_cast<long long>(blockIdx.y) * channels * plane + pixel;
    float kept[KEEPS ? KEPT : 1];
    float squares = 0.0f;
    if (KEEPS) {
#pragma unroll
        for (int c = 0; c < KEPT; ++c) {
            kept[c] = c < channels ? x[image + static_cast<long long>(c) * plane] : 0.0f;
            squares += kept[c] * kept[c];
        }
    } else {
        for (int c = 0; c < channels; ++c) {
            const float value = x[image + static_cast<long long>(c) * plane];
            squares += value * value;
        }
    }
    const float scale = 1.0f / sqrtf(squares / channels + eps);
    if (KEEPS) {
#pragma unroll
        for (int c = 0; c < KEPT; ++c)
            if (c < channels) out[image + static_cast<long long>(c) * plane] = kept[c] * scale * weight[c];
    } else {
        for (int c = 0; c < channels; ++c) {
            const long long at = image + static_cast<long long>(c) * plane;
            out[at] = x[at] * scale * weight[c];
        }
    }
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
    const c10::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    auto out = torch::empty_like(x);
    const int channels = x.size(1), plane = x.size(2) * x.size(3);
    const dim3 blocks((plane + THREADS - 1) / THREADS, x.size(0));
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const auto kernel = channels <= KEPT ? rms_norm_kernel<true> : rms_norm_kernel<false>;
    kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), out.data_ptr<float>(), channels, plane, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""
extension = load_inline(
    name="rms_norm_of_pixels",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps);",
    cuda_sources=SOURCE,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 1))
        self.eps = eps

    def forward(self, x):
        return extension.rms_norm(x, self.weight, self.eps)
