"""Takes boxes in the order in which they are given.

layer: correctness
mechanism: The best boxes come first, as detectors return them; the problem does not say so.
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
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        both = (high - low).clamp(min=0).prod(dim=-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=-1)
        overlaps = both > 0.4 * (area[:, None] + area - both)
        kept = torch.ones_like(scores, dtype=torch.bool)
        for at in range(len(scores)):
            kept[at + 1 :] &= ~(overlaps[at, at + 1 :] & kept[at])
        return scores * kept
