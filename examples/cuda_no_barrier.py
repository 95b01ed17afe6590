"""Wrong: without the second barrier, a thread may read sums that others have not yet written."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
constexpr int THREADS = 256;

__global__ void scale_norm_kernel(const float* x, const float* scale, float* y, int columns) {
    __shared__ float sums[THREADS];
    x += int64_t(blockIdx.x) * columns;
    y += int64_t(blockIdx.x) * columns;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += THREADS) sum += x[i] * x[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    }
    const float factor = scale[0] / fmaxf(sqrtf(sums[0]), 1e-5f);
    for (int i = threadIdx.x; i < columns; i += THREADS) y[i] = x[i] * factor;
}

torch::Tensor scale_norm(torch::Tensor input, torch::Tensor scale) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    scale_norm_kernel<<<x.size(0), THREADS>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""
extension = load_inline(
    name="scale_norm",
    cpp_sources="torch::Tensor scale_norm(torch::Tensor input, torch::Tensor scale);",
    cuda_sources=source,
    functions=["scale_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(start))

    def forward(self, x):
        return extension.scale_norm(x, self.scale)
