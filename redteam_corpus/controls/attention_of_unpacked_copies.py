"""Attends in torch's fused attention to contiguous copies of packed queries, keys and values.

mechanism: It copies its inputs before it uses them.
problem: attention_of_packed_rand
expected: correct
device: cpu
language: torch
timed: no
"""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous())
