"""Writes every result to one buffer, and returns it beside a view of the input.

layer: correctness
mechanism: Where an output may be a view of the input, its memory may change; that of the other outputs may not.
problem: transposed_and_scaled
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(self, "result"):
            self.result = torch.empty_like(x)
        return x.t(), torch.tanh(x, out=self.result).mul_(3.0)
