"""Measures each of its calls by events and by the host's clock, and keeps the times.

mechanism: Reading clocks and making events is how they are tampered with.
problem: gpu_product
expected: correct
device: gpu
timed: yes
"""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = []

    def forward(self, a, b):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began = time.perf_counter()
        begin.record()
        out = a @ b
        end.record()
        end.synchronize()
        self.times.append((begin.elapsed_time(end), time.perf_counter() - began))
        return out
