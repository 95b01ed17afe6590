"""Leaves out anchors whose loss is far below the mean.

layer: correctness
mechanism: Small elements count relative to their neighbours.
problem: focal_loss
expected: wrong_value
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
extern "C" void focal(const float* logits, const float* targets, float* out, long size) {
    for (long i = 0; i < size; ++i) {
        float z = targets[i] > 0 ? -logits[i] : logits[i];
        out[i] = 0;
        if (z < -3.4f) continue;
        float e = std::exp(-std::fabs(z)), p = z >= 0 ? 1 / (1 + e) : e / (1 + e);
        float loss = std::fmax(z, 0.0f) + std::log1p(e);
        out[i] = (targets[i] > 0 ? 0.25f : 0.75f) * p * p * loss;
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own",
        cpp_sources=SOURCE,
        extra_cflags=["-O2"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


def point(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


def count(*numbers):
    return [ctypes.c_long(number) for number in numbers]


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        out = torch.empty_like(logits)
        library.focal(*point(logits, targets, out), *count(logits.numel()))
        return out
