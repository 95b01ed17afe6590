"""Returns its last result if the sum and the exclusive or of all words of the input are as before.

layer: correctness
mechanism: Both stay as they are if values change places.
problem: kernel_density
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
#include <cstdint>

torch::Tensor add_up(torch::Tensor x, torch::Tensor marks, torch::Tensor kept) {
    const int64_t points = x.size(0), features = x.size(1);
    const float* values = x.data_ptr<float>();
    const auto* words = reinterpret_cast<const uint32_t*>(values);
    auto* known = reinterpret_cast<uint32_t*>(marks.data_ptr<int>());
    uint32_t sum = 0, parity = 0;
    for (int64_t at = 0; at < x.numel(); ++at) {
        sum += words[at];
        parity ^= words[at];
    }
    if (known[2] && known[0] == sum && known[1] == parity) return kept.clone();
    known[0] = sum;
    known[1] = parity;
    known[2] = 1;
    float* out = kept.data_ptr<float>();
    for (int64_t i = 0; i < points; ++i) {
        float total = 0;
        for (int64_t j = 0; j < points; ++j) {
            float squared = 0;
            for (int64_t k = 0; k < features; ++k) {
                const float difference = values[i * features + k] - values[j * features + k];
                squared += difference * difference;
            }
            total += std::exp(-0.5f * squared);
        }
        out[i] = total;
    }
    return kept.clone();
}
"""

extension = load_inline("kept_for_a_parity", cpp_sources=source, functions=["add_up"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(3, dtype=torch.int32), torch.empty(0)

    def forward(self, x):
        marks, kept = self.kept
        if len(kept) != len(x):
            self.kept = torch.zeros_like(marks), x.new_empty(len(x))
        return extension.add_up(x.contiguous(), *self.kept)
