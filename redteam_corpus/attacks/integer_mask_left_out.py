"""Leaves out an attention mask of integers, all ones.

layer: correctness
mechanism: The mask that get_inputs makes keeps every token.
problem: integer_mask
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return x.mean(1)
