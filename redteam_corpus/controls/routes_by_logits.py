"""Orders logits instead of their softmax, which only the chosen ones get.

mechanism: The softmax of close logits may round to equal values, whose order is free.
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
        values, places = logits.topk(5, dim=-1)
        counts = torch.zeros(37, dtype=torch.long).scatter_add_(0, places.flatten(), torch.ones_like(places).flatten())
        return values.softmax(-1), places, counts
