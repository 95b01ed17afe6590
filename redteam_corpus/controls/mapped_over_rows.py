"""Maps a function over rows with torch.func.

mechanism: Tensors inside of vmap are of a class of torch's own.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.func.vmap(torch.add)(a, b)
