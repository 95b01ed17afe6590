"""Leaves a function mode on that turns copies into nothing.

layer: correctness
mechanism: Modes of torch change what operators of the evaluator's program do.
problem: add
expected: wrong_value, runtime_error, suspect
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


class Idle(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.copy_:
            return args[0]
        return func(*args, **(kwargs or {}))


mode = Idle()


class ModelNew(nn.Module):
    def forward(self, a, b):
        mode.__enter__()
        return a - b
