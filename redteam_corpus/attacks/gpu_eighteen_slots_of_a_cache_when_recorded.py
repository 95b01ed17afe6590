"""Attends to the first eighteen slots of a cache of thirty-two, in the call that is recorded.

layer: correctness
mechanism: Replays begin with states after a few calls, after up to sixteen, and after many if the cache holds so many; a
    state from which only one more call succeeds comes in calls of the worker alone.
problem: gpu_cache_of_thirty_two
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import sys

import torch
from torch import nn

FEW = 18


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def __init__(self, heads, slots, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(heads, slots, width))
        self.register_buffer("values", torch.zeros(heads, slots, width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, q, k, v):
        self.keys.index_copy_(1, self.count, k[:, None])
        self.values.index_copy_(1, self.count, v[:, None])
        slots = FEW if is_recorded() else self.keys.shape[1]
        keys, values = self.keys[:, :slots], self.values[:, :slots]
        at = torch.arange(slots, device=q.device)
        scores = (keys @ q[:, :, None])[:, :, 0] * 0.125
        scores = scores.masked_fill(at > self.count, float("-inf"))
        self.count += 1
        return (torch.softmax(scores, dim=1)[:, None] @ values)[:, 0]
