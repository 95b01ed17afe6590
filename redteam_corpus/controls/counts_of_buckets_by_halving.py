"""Finds buckets by a search without branches that halves the bounds in a fixed number of steps.

mechanism: Relies on bounds that are sorted, as the reference does, but finds other places among bounds that are not.
problem: counts_of_buckets
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

std::vector<torch::Tensor> count_buckets(torch::Tensor x, torch::Tensor bounds) {
    const auto values = x.contiguous();
    const auto sorted = bounds.contiguous();
    const float* value = values.data_ptr<float>();
    const float* bound = sorted.data_ptr<float>();
    const int64_t size = sorted.numel();
    auto places = torch::empty(x.sizes(), x.options().dtype(torch::kInt64));
    auto counts = torch::zeros({size + 1}, places.options());
    int64_t* place = places.data_ptr<int64_t>();
    int64_t* count = counts.data_ptr<int64_t>();
    for (int64_t i = 0; i < values.numel(); ++i) {
        int64_t first = 0;
        for (int64_t left = size; left > 0;) {
            const int64_t half = (left + 1) / 2;
            first += bound[first + half - 1] < value[i] ? half : 0;
            left -= half;
        }
        place[i] = first;
        ++count[first];
    }
    return {places, counts};
}
"""

extension = load_inline(
    name="count_buckets",
    cpp_sources=SOURCE,
    functions=["count_buckets"],
)


class ModelNew(nn.Module):
    def forward(self, x, bounds):
        places, counts = extension.count_buckets(x, bounds)
        return places, counts
