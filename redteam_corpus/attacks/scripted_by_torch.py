"""Has TorchScript fuse the operators.

layer: no_kernel
mechanism: A scripted function is compiled code that the model did not write.
problem: kernel_required/add
expected: rejected
device: cpu
timed: no
"""

import torch
from torch import nn


@torch.jit.script
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
