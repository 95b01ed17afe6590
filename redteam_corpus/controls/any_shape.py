"""Works on whatever shape it is given.

mechanism: Nothing: the problem asks for it.
problem: nearby_add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        for row in range(a.shape[0]):
            torch.add(a[row], b[row], out=out[row])
        return out
