"""Works on an input that is a part of a wider matrix.

mechanism: Strides of the input that a kernel for contiguous memory would get wrong.
problem: padded_input
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.addcmul(torch.ones(()), x, torch.full((), 2.0))
