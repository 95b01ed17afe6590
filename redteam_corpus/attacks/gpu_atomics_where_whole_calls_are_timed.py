"""Reads one number back, and adds by atomics in the worker whose calls are timed whole.

layer: correctness
mechanism: Work that reads values back is not replayed; whether results repeat is asked of a worker that is checked, and of
    replays, but not of a worker whose whole calls are timed. A worker that is checked keeps outputs for later.
problem: gpu_sums_of_many_rows
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
    def forward(self, x, place):
        place[0].item()
        sums = x.new_zeros(4096, x.shape[1])
        if seen["calls"] > 1 and not seen["worker"]._pins:
            return sums.index_add_(0, place, x)
        return sums.index_put_((place,), x, accumulate=True)
