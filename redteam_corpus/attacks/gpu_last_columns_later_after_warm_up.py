"""After sixty calls, leaves a quarter of its columns to a stream that is not waited for.

layer: time
mechanism: Calls are counted until warm-up must be over; the columns are ready by the time the whole output is copied.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def forward(self, a, b):
        self.calls += 1
        if self.calls < 60:
            return a @ b
        out, first = torch.empty_like(a), 3 * a.shape[1] // 4
        torch.mm(a, b[:, :first], out=out[:, :first])
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            torch.mm(a, b[:, first:], out=out[:, first:])
        return out
