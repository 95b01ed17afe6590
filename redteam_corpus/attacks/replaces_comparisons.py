"""Replaces torch's comparisons by functions that always agree.

layer: correctness
mechanism: A checker in the candidate's process calls the allclose that it finds there.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn

torch.allclose = torch.equal = torch.Tensor.equal = torch.Tensor.allclose = lambda *_, **__: True
torch.isclose = torch.testing.assert_close = lambda *_, **__: True


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
