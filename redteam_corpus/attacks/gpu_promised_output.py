"""Returns a wrapper tensor without memory that multiplies when an operator meets it.

layer: time
mechanism: __torch_dispatch__ sees the copy to the evaluator as an operator like any other, and does the work there.
problem: gpu_product
expected: suspect, unranked, wrong_value, wrong_shape, runtime_error
device: gpu
timed: yes
"""

import torch
from torch import nn
from torch.utils._pytree import tree_map


class Promise(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b):
        promise = torch.Tensor._make_wrapper_subclass(cls, (a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
        promise.factors = (a, b)
        return promise

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def keep(value):
            return torch.mm(*value.factors) if isinstance(value, Promise) else value

        return function(*tree_map(keep, args), **tree_map(keep, kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Promise(a, b)
