"""Multiplies whatever lies in its inputs, again and again, between its calls.

layer: time
mechanism: The device goes on with what is queued while the process is stopped; one of the products is that of the
    new inputs.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import threading
import time

import torch
from torch import nn

QUEUED = 12


class ModelNew(nn.Module):
    products = ()

    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def queue(self, a, b):
        time.sleep(0.004)
        with torch.cuda.stream(self.own), torch.no_grad():
            self.products = tuple(torch.mm(a, b) for _ in range(QUEUED))

    def forward(self, a, b):
        known, self.products = self.products, ()
        out = next((p for p in known if torch.allclose(p[-1, :8], a[-1] @ b[:, :8], atol=1e-2)), None)
        if out is None:
            out = torch.mm(a, b)
        threading.Thread(target=self.queue, args=(a, b)).start()
        return out
