"""Makes float64 the default dtype and asks for float32 where it needs it.

mechanism: What the evaluator makes in this process may become float64.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size, dtype=torch.float32)

    def forward(self, x):
        return torch.relu(self.linear(x))
