"""Splits the rows over Python threads and joins them.

mechanism: Threads of its own look like work that goes on after the call.
problem: add
expected: correct
device: cpu
timed: no
"""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        threads = [
            threading.Thread(target=lambda part=part: torch.add(a[part::2], b[part::2], out=out[part::2]))
            for part in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out
