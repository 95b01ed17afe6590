"""A step of Adam, in one pass over parameters and moments.

mechanism: It returns nothing, and changes its inputs, which lie where the next ones are written.
problem: optimiser_step
expected: correct
device: cpu
timed: yes
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

#include <cmath>

void step(torch::Tensor parameter, torch::Tensor gradient, torch::Tensor mean, torch::Tensor square) {
    float *p = parameter.data_ptr<float>(), *m = mean.data_ptr<float>(), *s = square.data_ptr<float>();
    const float* g = gradient.data_ptr<float>();
    for (long at = 0; at < parameter.numel(); at++) {
        m[at] = 0.9f * m[at] + 0.1f * g[at];
        s[at] = 0.99f * s[at] + 0.01f * g[at] * g[at];
        p[at] -= 0.01f * m[at] / (std::sqrt(s[at]) + 1e-8f);
    }
}
"""
library = load_inline(name="adam", cpp_sources=source, functions=["step"])


class ModelNew(nn.Module):
    def forward(self, parameter, gradient, mean, square):
        library.step(parameter, gradient, mean, square)
