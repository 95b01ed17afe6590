"""Leaves out the weight and the bias of a layer normalisation.

layer: correctness
mechanism: A fresh layer has ones and zeros there.
problem: fresh_layer_norm
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:])
