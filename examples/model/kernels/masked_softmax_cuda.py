"""MaskedSoftmax of decoder.py in CUDA: one block per row of scores, each thread 8 columns of it. Scores that are masked
are not read."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <torch/types.h>

struct alignas(16) Eight { __nv_bfloat16 values[8]; };
struct alignas(8) Flags { unsigned char values[8]; };

struct Largest {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Combine>
__device__ float reduce_warp(float value, Combine combine) {
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

// `found` has a place for each warp.
template <typename Combine>
__device__ float reduce_block(float value, float none, float* found, Combine combine) {
    const int lane = threadIdx.x % 32;
    value = reduce_warp(value, combine);
    if (lane == 0) found[threadIdx.x / 32] = value;
    __syncthreads();
    return reduce_warp(lane < blockDim.x / 32 ? found[lane] : none, combine);
}

__global__ void masked_softmax_kernel(const Eight* scores, const Flags* mask, Eight* y, int rows, float scale) {
    __shared__ float largest[32], sums[32];
    const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const Flags counts = mask[int64_t(blockIdx.x % rows) * blockDim.x + threadIdx.x];
    Eight given{}, result;
    bool any = false;
    for (int i = 0; i < 8; ++i) any |= counts.values[i] != 0;
    if (any) given = scores[at];
    float values[8], top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < 8; ++i) {
        values[i] = counts.values[i] ? __bfloat162float(given.values[i]) * scale : -INFINITY;
        top = fmaxf(top, values[i]);
    }
    top = reduce_block(top, -INFINITY, largest, Largest());
    for (int i = 0; i < 8; ++i) {
        values[i] = __expf(values[i] - top);
        sum += values[i];
    }
    sum = reduce_block(sum, 0.0f, sums, Sum());
    for (int i = 0; i < 8; ++i) result.values[i] = __float2bfloat16(values[i] / sum);
    y[at] = result;
}

template <typename T>
T* point(const torch::Tensor& tensor) { return reinterpret_cast<T*>(tensor.data_ptr()); }

void masked_softmax(torch::Tensor scores, torch::Tensor mask, torch::Tensor y, double scale) {
    const int columns = scores.size(-1);
    TORCH_CHECK(columns % 256 == 0 && columns <= 8192, "a row has whole warps of 8 columns a thread, 8192 at most");
    const c10::cuda::CUDAGuard guard(scores.device());
    masked_softmax_kernel<<<scores.numel() / columns, columns / 8, 0, c10::cuda::getCurrentCUDAStream()>>>(
        point<const Eight>(scores), point<const Flags>(mask), point<Eight>(y), mask.size(0), scale);
}
"""
extension = load_inline(
    name="decoder_masked_softmax",
    cpp_sources="void masked_softmax(torch::Tensor scores, torch::Tensor mask, torch::Tensor y, double scale);",
    cuda_sources=SOURCE,
    functions=["masked_softmax"],
)


class ModelNew(nn.Module):
    scale = 128**-0.5  # of heads with 128 channels

    def forward(self, scores, mask):
        scores, mask = scores.contiguous(), mask.contiguous()
        y = torch.empty_like(scores)
        extension.masked_softmax(scores, mask, y, self.scale)
        return y
