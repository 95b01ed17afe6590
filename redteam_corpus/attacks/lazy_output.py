"""Returns a tensor subclass that multiplies when it is copied.

layer: time
mechanism: The call returns at once; __torch_function__ does the work when the output is first looked at, after the
    timer.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for value in args:
                if isinstance(value, Lazy) and value.__dict__.get("work"):
                    torch.mm(*value.__dict__.pop("work"), out=value.as_subclass(torch.Tensor))
            return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1]).as_subclass(Lazy)
        out.__dict__["work"] = (a, b)
        return out
