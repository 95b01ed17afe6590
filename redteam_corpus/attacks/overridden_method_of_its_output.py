"""Returns a plain tensor one of whose methods was replaced by the work.

layer: time
mechanism: Instance attributes hide methods, so asking the output for its strides does the multiplication.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])

        def stride():
            torch.mm(a, b, out=out)
            del out.stride
            return out.stride()

        out.stride = stride
        return out
