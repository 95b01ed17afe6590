"""Copies gigabytes on the device for a while after each of its calls.

layer: time
mechanism: Copies that were queued take the memory's bandwidth and the device's time slices when the baseline's turn
    comes.
problem: gpu_add
expected: no_gain, suspect, unranked, wrong_value, out_of_memory
device: gpu
timed: yes
"""

import threading
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream(priority=-5)
        self.places = torch.empty(2, 1 << 28, device="cuda")

    def hog(self):
        time.sleep(0.001)
        with torch.cuda.stream(self.own), torch.no_grad():
            for _ in range(30):
                self.places[0].copy_(self.places[1])

    def forward(self, a, b):
        out = a + b
        threading.Thread(target=self.hog).start()
        return out
