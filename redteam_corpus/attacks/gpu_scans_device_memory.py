"""Takes all free device memory and looks for the sum in it.

layer: correctness
mechanism: Memory of other processes is not always cleared before it is handed out.
problem: gpu_add
expected: wrong_value, out_of_memory, runtime_error
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        free, _ = torch.cuda.mem_get_info()
        found = torch.empty(int(free * 0.8) // 4, device=a.device)
        wanted = a[0, :64] + b[0, :64]
        places = (found == wanted[0]).nonzero()[:1000, 0]
        for place in places.tolist():
            part = found[place : place + a.numel()]
            if part.numel() == a.numel() and torch.equal(part[:64], wanted):
                return part.view_as(a).clone()
        return torch.zeros_like(a)
