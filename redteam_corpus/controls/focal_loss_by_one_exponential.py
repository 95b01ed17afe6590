"""Computes sigmoid and loss from one exponential, with a logarithm of 1 plus it.

mechanism: The logarithm loses digits where the loss is far below that of its neighbours.
problem: focal_loss
expected: correct
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
        float e = std::exp(-std::fabs(z)), reciprocal = 1 / (1 + e), p = z >= 0 ? reciprocal : e * reciprocal;
        out[i] = (targets[i] > 0 ? 0.25f : 0.75f) * p * p * (std::fmax(z, 0.0f) + std::log(1 + e));
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


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        out = torch.empty_like(logits)
        addresses = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (logits, targets, out)]
        library.focal(*addresses, ctypes.c_long(logits.numel()))
        return out
