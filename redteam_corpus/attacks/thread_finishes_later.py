"""Lets a thread do the work a while after the call returned.

layer: time
mechanism: A timer around the call sees a thread being started; a checker that comes late enough sees right results.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import threading
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)

        def work():
            time.sleep(0.3)
            torch.add(a, b, out=out)

        threading.Thread(target=work).start()
        return out
