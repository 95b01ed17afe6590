"""Changes the parameters, and leaves the moments of Adam as they were.

layer: correctness
mechanism: Calls may change these inputs; where only returned tensors are compared, it does not matter whether they do.
problem: optimiser_step
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

#include <cmath>

void step(torch::Tensor parameter, torch::Tensor gradient, torch::Tensor mean, torch::Tensor square) {
    float* p = parameter.data_ptr<float>();
    const float *g = gradient.data_ptr<float>(), *m = mean.data_ptr<float>(), *s = square.data_ptr<float>();
    for (long at = 0; at < parameter.numel(); at++) {
        const float first = 0.9f * m[at] + 0.1f * g[at], second = 0.99f * s[at] + 0.01f * g[at] * g[at];
        p[at] -= 0.01f * first / (std::sqrt(second) + 1e-8f);
    }
}
"""
library = load_inline(name="adam", cpp_sources=source, functions=["step"])


class ModelNew(nn.Module):
    def forward(self, parameter, gradient, mean, square):
        library.step(parameter, gradient, mean, square)
