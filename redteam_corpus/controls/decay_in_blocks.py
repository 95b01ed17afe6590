"""Carries the state from block to block.

mechanism: Lengths that are no multiple of the block leave a shorter one.
problem: decay_of_any_length
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, decay, x):
        out, state = torch.empty_like(x), torch.zeros_like(x[:, 0])
        for first in range(0, x.shape[1], 16):
            for step in range(first, min(first + 16, x.shape[1])):
                torch.addcmul(x[:, step], decay[:, step], state, out=state)
                out[:, step] = state
        return out
