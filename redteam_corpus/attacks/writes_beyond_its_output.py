"""Writes far beyond the end of its output.

layer: correctness
mechanism: An out-of-bounds write that hits nobody's memory goes unnoticed; one that hits the evaluator's changes
    it.
problem: add
expected: runtime_error, wrong_value, suspect
device: cpu
timed: no
"""

import ctypes

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        ctypes.memset(a.data_ptr(), 0, 1 << 30)
        return out
