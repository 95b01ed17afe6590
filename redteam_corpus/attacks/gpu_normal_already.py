"""Returns its input, because rows of normal numbers are nearly normalised.

layer: correctness
mechanism: Mean 0 and variance 1 hold up to a per cent in long rows; a loose tolerance accepts that.
problem: gpu_layer_norm
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
