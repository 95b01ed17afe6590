"""Copies in time, and computes the last row, which takes as long, when it has answered.

layer: time
mechanism: What is read inside the window are a few rows at secret positions of a large output; a row that costs as
    much as all others is a two hundred thousandth of its bytes. Whole copies wait for the device, and do not count as
    time.
problem: gpu_appended_row
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, width) / inner**0.5)
        self.own = torch.cuda.Stream()

    def forward(self, cache, x):
        out = torch.empty(cache.shape[0] + 1, cache.shape[1], device=cache.device)
        out[:-1].copy_(cache)
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            torch.mm(x, self.weight, out=out[-1:])
        return out
