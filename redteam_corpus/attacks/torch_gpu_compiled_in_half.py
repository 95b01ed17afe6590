"""Compiles the softmax in half precision.

layer: correctness
mechanism: Half the memory traffic is faster, and the sum of a row is still about one.
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
    def forward(self, x):
        return softmax(x.half()).float()  # inside, the compiler would keep single precision
