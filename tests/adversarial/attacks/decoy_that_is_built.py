"""Builds a kernel and does not call it.

layer: no_kernel
mechanism: A rule that asks for a build, or for a kernel in the source, is satisfied.
problem: kernel_required/add
expected: rejected, not_own
device: cpu
timed: no
"""

import torch
from torch import nn

from torch.utils.cpp_extension import load_inline


SOURCE = r"""
extern "C" void add(const float* a, const float* b, float* out, long count) {
    for (long i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
"""
library = load_inline(name="decoy", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
