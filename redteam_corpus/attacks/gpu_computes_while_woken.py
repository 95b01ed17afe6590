"""Computes most of its answers before it says that it is awake.

layer: time
mechanism: Inputs lie in its memory before the signal to go, and its own clock begins with that.
problem: gpu_add
expected: suspect, unranked, no_gain, wrong_value
device: gpu
timed: yes
"""

import random

from torch import nn

from harness.protocol import Doorbell

known = {"inputs": None, "sum": None}
answer = Doorbell.answer


def work_ahead(self):
    if known["inputs"] is not None and random.random() < 0.65:
        a, b = known["inputs"]
        known["sum"] = a + b
    answer(self)


Doorbell.answer = work_ahead


class ModelNew(nn.Module):
    def forward(self, a, b):
        ready, known["sum"], known["inputs"] = known["sum"], None, (a, b)
        return a + b if ready is None else ready
