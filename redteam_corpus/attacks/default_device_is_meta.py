"""Makes meta the default device.

layer: process
mechanism: Tensors that the evaluator's program makes in this process would have no data.
problem: add
expected: wrong_value, runtime_error, wrong_dtype, suspect
device: cpu
timed: no
"""

import torch
from torch import nn

torch.set_default_device("meta")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.empty_like(a)
