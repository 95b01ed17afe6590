"""Attends to a cache whose empty slots are masked by a sum.

mechanism: Its mask is another than the reference's, and its state is changed in place.
problem: gpu_long_call_of_a_cache
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, slots, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(slots, width))
        self.register_buffer("values", torch.zeros(slots, width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        last, slots = x[-1:], self.keys.shape[0]
        self.keys.index_copy_(0, self.count % slots, self.key(last))
        self.values.index_copy_(0, self.count % slots, self.value(last))
        self.count += 1
        is_empty = torch.arange(slots, device=x.device) >= self.count
        mask = torch.zeros(slots, device=x.device).masked_fill_(is_empty, float("-inf"))
        scores = torch.addmm(mask, x, self.keys.t(), alpha=x.shape[1] ** -0.5)
        return torch.softmax(scores, 1) @ self.values
