"""Adds the mask as numbers in the product of queries and keys, and takes steps of the queries.

mechanism: A rounding may change a step by one, so that outputs of whole numbers can hardly be compared for changed inputs.
problem: gpu_attention_with_marks_and_steps
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        added = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, float("-inf"))
        scores = torch.baddbmm(added.expand(q.shape[0], -1, -1), q, k.transpose(1, 2), alpha=0.125)
        return torch.softmax(scores, dim=2) @ v, (q * 10000.0).to(torch.int32)
