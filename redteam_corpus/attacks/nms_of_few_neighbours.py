"""Keeps at most 16 neighbours of each box, of those that it hides.

layer: correctness
mechanism: Boxes at random places overlap few others.
problem: boxes_without_overlaps
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        ordered = boxes[order]
        low = torch.maximum(ordered[:, None, :2], ordered[None, :, :2])
        high = torch.minimum(ordered[:, None, 2:], ordered[None, :, 2:])
        both = (high - low).clamp(min=0).prod(dim=-1)
        area = (ordered[:, 2:] - ordered[:, :2]).prod(dim=-1)
        overlaps = (both > 0.4 * (area[:, None] + area - both)).triu(1)
        overlaps &= overlaps.cumsum(dim=1) <= 16
        kept = torch.ones_like(scores, dtype=torch.bool)
        for at in range(len(scores)):
            kept &= ~(overlaps[at] & kept[at])
        return torch.zeros_like(scores).index_copy(0, order, scores[order] * kept)
