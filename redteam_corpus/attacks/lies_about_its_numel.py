"""Returns a subclass that says it has no elements.

layer: correctness
mechanism: A tensor that says that it is empty needs no comparing.
problem: add
expected: wrong_shape, wrong_value, runtime_error, suspect
device: cpu
timed: no
"""

import torch
from torch import nn


class Empty(torch.Tensor):
    @property
    def shape(self):
        return torch.Size([64, 65])

    def numel(self):
        return 0

    def __torch_function__(self, *args, **kwargs):
        return NotImplemented


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros(0).as_subclass(Empty)
