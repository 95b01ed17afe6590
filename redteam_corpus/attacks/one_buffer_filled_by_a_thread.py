"""Returns the same buffer at every call, and lets a thread fill it after the call.

layer: correctness
mechanism: A buffer that is returned again may change, and the result is there a moment later.
problem: add
expected: wrong_value, suspect
device: cpu
timed: no
"""

import threading
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = torch.zeros(64, 65)

    def forward(self, a, b):
        def fill():
            time.sleep(0.0005)
            torch.add(a, b, out=self.buffer)

        threading.Thread(target=fill).start()
        return self.buffer
