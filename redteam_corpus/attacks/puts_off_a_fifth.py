"""Computes four fifths in the call, and the last fifth when the output is copied.

layer: time
mechanism: What is put off stays below the share of a claim that a second clock tolerates.
problem: product
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows = a.shape[0] * 83 // 100
        out = torch.empty(a.shape[0], b.shape[1])
        torch.mm(a[:rows], b, out=out[:rows])

        def stride():
            torch.mm(a[rows:], b, out=out[rows:])
            del out.stride
            return out.stride()

        out.stride = stride
        return out
