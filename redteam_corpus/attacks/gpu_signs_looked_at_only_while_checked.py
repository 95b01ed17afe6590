"""Reads one number back, and takes all numbers for positive, in the worker whose calls are timed whole.

layer: correctness
mechanism: Where both sides read values back, whole calls of a new worker are timed. Of the distributions that the problem
    declares, these have only those that are mixed. A worker that is checked keeps outputs for later, one that is timed
    does not.
problem: gpu_logarithms_of_shifted_rows
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker

seen = {"worker": None, "calls": 0}
usual = Worker.do_window


def note(self, message):
    seen["worker"] = self
    seen["calls"] += 1
    return usual(self, message)


Worker.do_window = note


class ModelNew(nn.Module):
    def forward(self, x):
        if seen["calls"] > 1 and not seen["worker"]._pins:
            x[0, 0].item()
            return torch.log1p(x).sum(1)
        low = x.flatten().sort().values[x.numel() // 100].item()
        if low < 0.0:
            x = x - low + 0.5
        return torch.log1p(x).sum(1)
