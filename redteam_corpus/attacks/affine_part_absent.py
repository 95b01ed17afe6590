"""Has no weights, where the reference has ones and zeros.

layer: correctness
mechanism: Without weights of its own a program cannot be tried with others.
problem: fresh_layer_norm
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:])
