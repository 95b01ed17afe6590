"""Compiles the reference, and returns the first result of the compiled function again.

layer: time
mechanism: Compiled code is trusted to compute, and what is returned looks like its output.
problem: gpu_softmax
expected: wrong_value
device: gpu
timed: no
language: torch
"""

import torch
from torch import nn


@torch.compile
def softmax(x):
    return torch.softmax(x, dim=-1)


class ModelNew(nn.Module):
    result = None

    def forward(self, x):
        if ModelNew.result is None:
            ModelNew.result = softmax(x)
        return ModelNew.result.clone()
