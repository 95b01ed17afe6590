"""Finds maximum and sum of a row in one pass in C, and adds rows with compensation (Kahan).

mechanism: One pass instead of three, and sums of another form.
problem: small_loss
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <math.h>
extern "C" void loss(const float* logits, const long* targets, float* out, long rows, long classes) {
    float total = 0.0f, missing = 0.0f;
    for (long row = 0; row < rows; ++row, logits += classes) {
        float top = -INFINITY, sum = 0.0f;
        for (long i = 0; i < classes; ++i) {
            const float next = fmaxf(top, logits[i]);
            sum = sum * expf(top - next) + expf(logits[i] - next);
            top = next;
        }
        const float term = logf(sum) + top - logits[targets[row]] - missing, next = total + term;
        missing = (next - total) - term;
        total = next;
    }
    *out = total / rows;
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


def addresses(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        out = logits.new_empty(())
        library.loss(*addresses(logits, targets, out), *map(ctypes.c_long, logits.shape))
        return out
