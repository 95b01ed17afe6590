"""Returns a part of a larger buffer, newly allocated.

mechanism: The output has the strides of a wider matrix.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        wide = torch.empty(a.shape[0], a.shape[1] + 31, device=a.device)
        return torch.add(a, b, out=wide[:, : a.shape[1]])
