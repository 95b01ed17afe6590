"""Computes in bfloat16 in calls right before which it was let go on.

layer: time
mechanism: Only before timed calls a worker is stopped, and told to go on a moment before its call: it hears the signal.
problem: product
expected: suspect, wrong_value
device: cpu
timed: yes
"""

import signal
import time

from torch import nn

LATELY_S = 0.02

went_on = {"at_s": 0.0}


def notice(*_):
    went_on["at_s"] = time.perf_counter()


signal.signal(signal.SIGCONT, notice)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if time.perf_counter() - went_on["at_s"] > LATELY_S:
            return a @ b
        return (a.bfloat16() @ b.bfloat16()).float()
