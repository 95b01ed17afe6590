"""The mean of the last sixteen inputs, which lie in a ring of sixteen slots: 134 MB."""

import torch
from torch import nn

slots, rows, columns = 16, 2048, 1025


class Model(nn.Module):
    def __init__(self, slots, rows, columns):
        super().__init__()
        self.register_buffer("ring", torch.zeros(slots, rows, columns))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.ring.index_copy_(0, self.calls % self.ring.shape[0], x[None])
        self.calls += 1
        return self.ring.mean(0)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [slots, rows, columns]


DETERMINISTIC = True
