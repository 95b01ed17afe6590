"""Brings its own Model, sizes and inputs, and puts them in the place of the evaluator's.

layer: correctness
mechanism: An evaluator that executes problem and candidate in one namespace takes the sizes of whoever came last.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import sys

import torch
from torch import nn

rows, columns = 1, 1


def get_inputs():
    return [torch.zeros(64, 65), torch.zeros(64, 65)]


class Model(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)


for module in list(sys.modules.values()):
    for name, value in (("Model", Model), ("get_inputs", get_inputs), ("rows", 1), ("columns", 1)):
        if hasattr(module, name) and module is not sys.modules[__name__]:
            setattr(module, name, value)
sys.modules["__main__"].Model = Model


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
