"""Computes a third of the rows only when its result is copied.

layer: time
mechanism: A replaced Tensor.copy_ finishes what is copied; if the clock ends with the call, that is nowhere in it.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

pending = {}
copy = torch.Tensor.copy_


def copy_finished(self, source, *args, **kwargs):
    job = pending.pop(id(source), None)
    if job is not None:
        out, a, b, rows = job
        torch.mm(a[rows:], b, out=out[rows:])
    return copy(self, source, *args, **kwargs)


torch.Tensor.copy_ = copy_finished


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        rows = a.shape[0] * 2 // 3
        torch.mm(a[:rows], b, out=out[:rows])
        pending.clear()
        pending[id(out)] = (out, a, b, rows)
        return out
