"""Starts a thread, returns, and waits for it when the output is looked at.

layer: time
mechanism: The results are right whenever they are read, but the waiting happens outside of the timed call.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        thread = threading.Thread(target=lambda: torch.mm(a, b, out=out))
        thread.start()

        def stride():
            thread.join()
            del out.stride
            return out.stride()

        out.stride = stride
        return out
