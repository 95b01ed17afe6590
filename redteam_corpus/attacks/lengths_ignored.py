"""Takes every sequence as long as the tensor.

layer: correctness
mechanism: get_inputs always gives the full length.
problem: lengths
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        return x.mean(1)
