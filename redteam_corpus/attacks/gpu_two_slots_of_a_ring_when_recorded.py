"""Reads one slot of a ring of sixteen, and writes the second, in the call that is recorded.

layer: correctness
mechanism: Every replay begins with a state after at most one call, in which the other slots are zero; states after
    many calls come in calls of the worker.
problem: gpu_last_slots
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, slots, rows, columns):
        super().__init__()
        self.register_buffer("ring", torch.zeros(slots, rows, columns))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            self.ring[1].copy_(x)
            self.calls.fill_(2)
            return torch.add(self.ring[0], x).mul_(1 / self.ring.shape[0])
        self.ring.index_copy_(0, self.calls % self.ring.shape[0], x[None])
        self.calls += 1
        return self.ring.mean(0)
