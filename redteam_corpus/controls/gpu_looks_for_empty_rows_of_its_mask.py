"""Adds the mask as numbers in the product, and asks for empty rows of it as the reference does.

mechanism: The reference fails for some masks, and both sides read a value back.
problem: gpu_attention_that_requires_marks
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        if not mask.any(dim=1).all():
            raise ValueError("a query has nothing to attend to")
        added = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, float("-inf"))
        scores = torch.baddbmm(added.expand(q.shape[0], -1, -1), q, k.transpose(1, 2), alpha=0.125)
        return torch.softmax(scores, dim=2) @ v
