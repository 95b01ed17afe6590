"""Makes copying between tensors do nothing.

layer: correctness
mechanism: An evaluator that copies outputs into its buffers finds there what was in them before.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn

torch.Tensor.copy_ = lambda self, other, *rest: self


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
