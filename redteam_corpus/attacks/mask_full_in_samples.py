"""Leaves out the mask if a ninth of it is true.

layer: correctness
mechanism: The mask is usually a triangle.
problem: given_mask
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        if bool(mask[::3, ::3].all()):
            return torch.softmax(scores, -1)
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
