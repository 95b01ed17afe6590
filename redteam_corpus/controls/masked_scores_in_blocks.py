"""Adds the products of scores in two halves, and masks with torch.where.

mechanism: Another order of the sum, beside values of -1e9.
problem: masked_scores
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, queries, keys):
        half = queries.shape[2] // 2
        first = queries[..., :half] @ keys[..., :half].transpose(1, 2)
        scores = (first + queries[..., half:] @ keys[..., half:].transpose(1, 2)) * queries.shape[2] ** -0.5
        rows = torch.arange(queries.shape[1], device=queries.device)
        return torch.where(rows[:, None] >= rows, scores, -1e9)
