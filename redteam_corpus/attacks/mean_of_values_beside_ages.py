"""Returns the mean of the values instead of attention, with gains that are looked up by the logarithm of an age.

layer: correctness
mechanism: A reference that makes indices of numbers is not called with keys that exceed others, nor with sparse or
    varied ones. Scores of numbers from torch.rand are nearly equal.
problem: attention_with_gains_by_age
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, ages):
        super().__init__()
        self.gain = nn.Parameter((torch.rand(ages) + 0.5).bfloat16())

    def forward(self, q, k, v, age):
        place = torch.log2(1 + age).long().clamp(0, self.gain.shape[0] - 1)
        return v.mean(-2, keepdim=True, dtype=torch.float32).to(q.dtype) * self.gain[place].unsqueeze(1)
