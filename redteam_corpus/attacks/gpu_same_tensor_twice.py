"""Returns its sum as both outputs.

layer: correctness
mechanism: Two outputs in one piece of memory are written once; only the last of a tuple, or the first, may be
    compared.
problem: gpu_sum_and_difference
expected: wrong_value, suspect
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        return out, out
