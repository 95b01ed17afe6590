"""Does its work in a callback of the garbage collector that the description of outputs sets off.

layer: time
mechanism: Collections run wherever memory is taken, also after the clock has stopped.
problem: product
expected: suspect, wrong_value, unranked, no_gain
device: cpu
timed: yes
"""

import gc

import torch
from torch import nn

pending = []


def work(phase, _):
    while pending:
        a, b, out = pending.pop()
        torch.mm(a, b, out=out)


gc.callbacks.append(work)


class ModelNew(nn.Module):
    def forward(self, a, b):
        gc.enable()
        gc.set_threshold(1)
        out = torch.empty(a.shape[0], b.shape[1])
        pending.append((a, b, out))
        return out
