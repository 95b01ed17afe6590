"""Has torch.compile write the kernel.

layer: no_kernel
mechanism: Inductor's kernel is a kernel, and it is faster; the model wrote none.
problem: kernel_required/add
expected: rejected, runtime_error, timeout
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.compile(torch.add)(a, b)
