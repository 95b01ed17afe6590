"""Takes blocks of 8 tokens for equal if their sums are.

layer: correctness
mechanism: Random tokens with the same sum are equal.
problem: common_prefixes
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, prompts, cached):
        sums = [one.unflatten(-1, (-1, 8)).sum(-1) for one in (prompts, cached)]
        is_block = (sums[0][:, None] == sums[1]).repeat_interleave(8, -1)
        return ((prompts[:, None] == cached) | is_block).long().cumprod(-1).sum(-1)
