"""Leaves boxes out in rounds, until none changes.

mechanism: Another algorithm, and areas in another form.
problem: boxes_without_overlaps
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, boxes, scores):
        left, top, right, bottom = boxes.unbind(1)
        width = torch.minimum(right[:, None], right) - torch.maximum(left[:, None], left)
        height = torch.minimum(bottom[:, None], bottom) - torch.maximum(top[:, None], top)
        both = width.clamp(min=0) * height.clamp(min=0)
        area = (right - left) * (bottom - top)
        hides = (both > 0.4 * (area[:, None] + area - both)) & (scores[:, None] > scores)
        kept = torch.ones_like(scores, dtype=torch.bool)
        for _ in range(len(scores)):
            found = ~(hides & kept[:, None]).any(dim=0)
            if torch.equal(found, kept):
                break
            kept = found
        return torch.where(kept, scores, 0.0)
