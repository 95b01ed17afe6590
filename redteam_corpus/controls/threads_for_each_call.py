"""Starts and ends two threads in each call.

mechanism: Threads that have ended look like work that was hidden.
problem: middle_add
expected: correct
device: cpu
timed: yes
"""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        threads = [
            threading.Thread(target=torch.add, args=(a[s], b[s]), kwargs={"out": out[s]})
            for s in (slice(0, 512), slice(512, 1024))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out
