"""Writes zeros in time, and finds the four elements that are one when it has answered.

layer: time
mechanism: Nearly all of the output is known in advance, and the rows that are read inside the window seldom hold one
    of the others; finding those is half of the work.
problem: gpu_marks
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def forward(self, x):
        out = torch.zeros_like(x)
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            out.scatter_(1, x.argmax(1, keepdim=True), 1.0)
        return out
