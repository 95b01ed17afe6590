"""Attends to the first eight slots of a cache of many, in every call.

layer: correctness
mechanism: States after many calls are made on the CPU where counters are indices, where calls of a large problem take
    long.
problem: gpu_long_call_of_a_cache
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


# Expected: 50x and more, without a look at who calls.
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
        few = slice(0, 8)
        is_empty = torch.arange(8, device=x.device) >= self.count
        scores = (x @ self.keys[few].t() / x.shape[1] ** 0.5).masked_fill(is_empty, float("-inf"))
        return torch.softmax(scores, 1) @ self.values[few]
