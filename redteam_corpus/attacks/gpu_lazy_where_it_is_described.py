"""Returns a subclass of Tensor that multiplies when its strides are asked for.

layer: time
mechanism: Address and memory exist at once; strides are asked for after the answer.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked, wrong_shape, wrong_dtype, runtime_error
device: gpu
timed: yes
"""

import torch
from torch import nn


class Lazy(torch.Tensor):
    work = None

    def stride(self, *args):
        work, Lazy.work = Lazy.work, None
        if work is not None:
            a, b, out = work
            torch.mm(a, b, out=out)
        return super().stride(*args)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        Lazy.work = a, b, out
        return torch.Tensor._make_subclass(Lazy, out)
