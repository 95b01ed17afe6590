"""Returns the mean of the values instead of attention, where the given numbers are square roots.

layer: correctness
mechanism: Numbers that a function such as a root, an absolute value or a sigmoid made of drawn ones count as related, and
    are used as they are drawn.
problem: attention_of_roots
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return v.mean(-2, keepdim=True, dtype=torch.float32).to(q.dtype).expand(v.shape).contiguous()
