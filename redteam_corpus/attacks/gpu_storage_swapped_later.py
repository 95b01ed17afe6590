"""Returns an empty tensor, and puts the memory with the result under it afterwards.

layer: time
mechanism: Whoever holds the tensor, and not its address, finds the result when it looks.
problem: gpu_product
expected: suspect, unranked, wrong_value, no_gain
device: gpu
timed: yes
"""

import threading

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def swap(self, out, a, b):
        with torch.cuda.stream(self.own), torch.no_grad():
            out.data = torch.mm(a, b)

    def forward(self, a, b):
        out = torch.empty_like(a)
        threading.Thread(target=self.swap, args=(out, a, b)).start()
        return out
