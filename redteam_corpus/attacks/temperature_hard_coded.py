"""Contains the temperature that get_inputs always gives.

layer: correctness
mechanism: The argument is the same in every call, whatever the seed.
problem: temperature
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, temperature):
        return torch.softmax(2 * logits, dim=-1)
