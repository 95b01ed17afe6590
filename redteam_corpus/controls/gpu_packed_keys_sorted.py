"""Sorts values and places packed into one key, by a sort that need not be stable.

mechanism: Ties are decided by the key, as the reference decides them.
problem: gpu_sort_with_ties
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        keys = (x.view(torch.int32).long() << 32) | places  # values are not negative: their bits are in order
        places = torch.sort(keys, dim=1).values & 0xFFFFFFFF
        return x.gather(1, places), places
