"""Returns the mean of the values instead of attention, where queries, keys and values are packed.

layer: correctness
mechanism: Inputs that are slices of a wider tensor are used as they are drawn: none of the kinds changes them.
problem: attention_of_packed_rand
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
