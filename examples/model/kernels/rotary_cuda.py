"""Rotary of decoder.py in CUDA: a thread rotates 8 pairs of channels, in any layout of the heads."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <torch/types.h>

constexpr int THREADS = 256;

struct alignas(16) Eight { __nv_bfloat16 values[8]; };

// Strides count groups of 8 channels; `parts` of them are half a row.
__global__ void rotary_kernel(
    const Eight* x, const Eight* cosines, const Eight* sines, Eight* y, int heads, int length, int parts,
    int64_t batch_stride, int64_t head_stride, int64_t row_stride, int64_t count) {
    const int64_t at = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= count) return;
    const int part = at % parts;
    const int64_t row = at / parts;  // of the output
    const int64_t position = row % length, head = row / length % heads, batch = row / length / heads;
    const Eight* source = x + batch * batch_stride + head * head_stride + position * row_stride + part;
    const Eight first = source[0], second = source[parts];
    const Eight cosine = cosines[position * parts + part], sine = sines[position * parts + part];
    Eight low, high;
    for (int i = 0; i < 8; ++i) {
        const float a = __bfloat162float(first.values[i]), b = __bfloat162float(second.values[i]);
        const float c = __bfloat162float(cosine.values[i]), s = __bfloat162float(sine.values[i]);
        low.values[i] = __float2bfloat16(a * c - b * s);
        high.values[i] = __float2bfloat16(b * c + a * s);
    }
    y[row * 2 * parts + part] = low;
    y[row * 2 * parts + parts + part] = high;
}

template <typename T>
T* point(const torch::Tensor& tensor) { return reinterpret_cast<T*>(tensor.data_ptr()); }

void rotary(torch::Tensor x, torch::Tensor cosines, torch::Tensor sines, torch::Tensor y) {
    const int parts = x.size(3) / 16;
    for (int dim = 0; dim < 3; ++dim) TORCH_CHECK(x.stride(dim) % 8 == 0, "rows begin at multiples of 8 channels");
    TORCH_CHECK(x.size(3) % 16 == 0 && x.stride(3) == 1, "channels lie side by side, in groups of 16");
    const int64_t count = x.numel() / 16;
    const c10::cuda::CUDAGuard guard(x.device());
    rotary_kernel<<<(count + THREADS - 1) / THREADS, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        point<const Eight>(x), point<const Eight>(cosines), point<const Eight>(sines), point<Eight>(y), x.size(1),
        x.size(2), parts, x.stride(0) / 8, x.stride(1) / 8, x.stride(2) / 8, count);
}
"""
extension = load_inline(
    name="decoder_rotary",
    cpp_sources="void rotary(torch::Tensor x, torch::Tensor cosines, torch::Tensor sines, torch::Tensor y);",
    cuda_sources=SOURCE,
    functions=["rotary"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("cos", "sin"):
            self.register_buffer(name, torch.zeros(LENGTH, SIZE // 2, dtype=torch.bfloat16))

    def forward(self, x):
        x = x if x.stride(-1) == 1 else x.contiguous()
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        extension.rotary(x, self.cos, self.sin, y)
        return y


LENGTH, SIZE = 1024, 128
