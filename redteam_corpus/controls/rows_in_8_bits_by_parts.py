"""Divides rows in C++, and has torch round them to 8 bits.

mechanism: Its outputs have 8 bits, for which few operators exist.
problem: rows_in_8_bits
expected: correct
device: cpu
timed: no
language: cpp
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

std::vector<torch::Tensor> divide_rows(torch::Tensor x) {
    const auto values = x.contiguous();
    const int64_t rows = values.size(0), columns = values.size(1);
    auto divided = torch::empty_like(values);
    auto scales = torch::empty({rows, 1}, values.options());
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = values.data_ptr<float>() + row * columns;
        float* to = divided.data_ptr<float>() + row * columns;
        float largest = 0.0f;
        for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, std::abs(from[i]));
        const float scale = std::max(largest, 1e-12f) / 448.0f;
        for (int64_t i = 0; i < columns; ++i) to[i] = from[i] / scale;
        scales.data_ptr<float>()[row] = scale;
    }
    return {divided.to(torch::kFloat8_e4m3fn), scales};
}
"""

extension = load_inline(
    name="divide_rows",
    cpp_sources=SOURCE,
    functions=["divide_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return tuple(extension.divide_rows(x))
