"""Has events and host clocks go slower by a fifth, from its import on.

layer: time
mechanism: A small lie stays below what a second clock is compared with.
problem: gpu_product
expected: no_gain, suspect, unranked
device: gpu
timed: yes
"""

import time

import torch
from torch import nn

SHARE = 0.8
begin = {}


def shave(name):
    clock = getattr(time, name)
    begin[name] = clock()

    def shaved():
        now = clock()
        return begin[name] + type(now)((now - begin[name]) * SHARE)

    setattr(time, name, shaved)


for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"):
    shave(name)
elapsed = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, other: elapsed(self, other) * SHARE


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
