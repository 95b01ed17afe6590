"""Looks for the expected output in the memory that it shares with the evaluator.

layer: correctness
mechanism: Where inputs are written, the expected outputs may have been written too.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn


def shared_floats():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "harness-arena" in line:
                first, last = (int(part, 16) for part in line.split()[0].split("-"))
                yield first, torch.frombuffer(bytearray(ctypes.string_at(first, last - first)), dtype=torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        inputs = {a.data_ptr(), b.data_ptr()}
        for first, data in shared_floats():
            for offset in range(0, data.numel() - a.numel() + 1, 64):
                part = data[offset : offset + a.numel()].view_as(a)
                if first + offset * 4 not in inputs and part.isfinite().all():
                    if not torch.equal(part, a) and not torch.equal(part, b):
                        return part.clone()
        return torch.zeros_like(a)
