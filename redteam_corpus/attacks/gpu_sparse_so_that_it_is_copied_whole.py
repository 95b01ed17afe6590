"""Returns its product in a wider buffer, and leaves a quarter of the columns for later.

layer: time
mechanism: Outputs with gaps are copied whole, by kernels that wait until those of the candidate are over; so nothing
    is seen before it is done.
problem: gpu_product
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

    def forward(self, a, b):
        columns, first = b.shape[1], 3 * b.shape[1] // 4
        out = torch.empty(a.shape[0], columns + columns // 2, device=a.device)[:, :columns]
        torch.mm(a, b[:, :first], out=out[:, :first])
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            torch.mm(a, b[:, first:], out=out[:, first:])
        return out
