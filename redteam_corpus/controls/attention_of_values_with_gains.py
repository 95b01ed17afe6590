"""Attends in torch's fused attention, and looks gains up by exponents instead of logarithms.

mechanism: It finds its places in another way than the reference.
problem: attention_with_gains_by_age
expected: correct
device: cpu
language: torch
timed: no
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, ages):
        super().__init__()
        self.gain = nn.Parameter((torch.rand(ages) + 0.5).bfloat16())

    def forward(self, q, k, v, age):
        place = (torch.frexp(1 + age).exponent - 1).clamp(0, self.gain.shape[0] - 1)
        return F.scaled_dot_product_attention(q, k, v).mul_(self.gain[place].unsqueeze(1))
