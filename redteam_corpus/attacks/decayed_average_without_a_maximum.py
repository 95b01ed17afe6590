"""Subtracts no maximum before exponentials.

layer: correctness
mechanism: The keys are small, and the maximum is not of an input itself.
problem: decayed_average
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, decay, bonus, keys, values):
        kept, last, weights = (-decay.exp()).exp(), bonus.exp(), keys.exp()
        total, weight, outputs = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0]), []
        for now, value in zip(weights.unbind(1), values.unbind(1), strict=True):
            outputs.append((total + last * now * value) / (weight + last * now))
            total, weight = kept * total + now * value, kept * weight + now
        return torch.stack(outputs, dim=1)
