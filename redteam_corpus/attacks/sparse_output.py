"""Returns an empty sparse tensor of the right shape.

layer: correctness
mechanism: A layout without elements costs nothing and has the right shape.
problem: add
expected: wrong_shape
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.long), torch.empty(0), tuple(a.shape))
