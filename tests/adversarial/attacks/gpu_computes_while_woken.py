"""Computes most of its answers before it says that it is awake.

layer: time
mechanism: What is done on the device before the signal to go is in no worker's clock; decoys find work in progress only.
problem: gpu_add
expected: suspect, unranked, no_gain
device: gpu
timed: yes
"""

import random

import torch
from torch import nn

from harness.worker.program import Worker

known = {"inputs": None, "sum": None}
wake = Worker._wake


def work_ahead(self):
    if known["inputs"] is not None and random.random() < 0.65:
        a, b = known["inputs"]
        known["sum"] = a + b
    wake(self)


Worker._wake = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        ready, known["sum"], known["inputs"] = known["sum"], None, (a, b)
        return a + b if ready is None else ready
