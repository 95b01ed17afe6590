"""ScaleNorm in C++, for the CPU."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Parallel.h>
#include <cmath>

torch::Tensor scale_norm(torch::Tensor input, torch::Tensor scale) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    const int64_t columns = x.size(1);
    const float factor = scale.data_ptr<float>()[0];
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const float* from = x.data_ptr<float>() + row * columns;
            float* to = y.data_ptr<float>() + row * columns;
            double sum = 0;
            for (int64_t i = 0; i < columns; ++i) sum += double(from[i]) * from[i];
            const float ratio = factor / std::fmax(std::sqrt(sum), 1e-5);
            for (int64_t i = 0; i < columns; ++i) to[i] = from[i] * ratio;
        }
    });
    return y;
}
"""
extension = load_inline(name="scale_norm", cpp_sources=source, functions=["scale_norm"])


class ModelNew(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(start))

    def forward(self, x):
        return extension.scale_norm(x, self.scale)
