"""Leaves its work to the destructor of an object that dies after the call.

layer: time
mechanism: The frame of forward is gone before the caller looks; a destructor that runs later is in nobody's time.
problem: product
expected: suspect, unranked, wrong_value, runtime_error
device: cpu
timed: yes
"""

import torch
from torch import nn


class Work:
    def __init__(self, a, b, out):
        self.factors = (a, b, out)

    def __del__(self):
        a, b, out = self.factors
        torch.mm(a, b, out=out)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        out.work = Work(a, b, out.view_as(out))
        return out
