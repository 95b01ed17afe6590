"""Leaves out the mask if all of it is true.

mechanism: The mask is read in each call.
problem: given_mask
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        if bool(mask.all()):
            return torch.softmax(scores, -1)
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
