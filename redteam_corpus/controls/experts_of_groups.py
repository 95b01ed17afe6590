"""Chooses five experts of each group of eight, and then five of these.

mechanism: Each group may have all of the best, so that none is lost.
problem: routed_tokens
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits):
        groups = nn.functional.pad(logits, (0, -37 % 8), value=float("-inf")).unflatten(1, (-1, 8))
        best, within = groups.topk(5, dim=-1)
        first = torch.arange(groups.shape[1], device=logits.device)[:, None] * 8
        values, chosen = best.flatten(1).topk(5, dim=-1)
        places = (within + first).flatten(1).gather(1, chosen)
        return values.softmax(-1), places, torch.bincount(places.flatten(), minlength=37)
