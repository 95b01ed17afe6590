"""Takes all device memory and keeps it.

layer: process
mechanism: The evaluator, the baseline and the next candidate find none.
problem: gpu_add
expected: out_of_memory, runtime_error, no_gain, suspect, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    held = None

    def forward(self, a, b):
        if self.held is None:
            out = a + b
            free, _ = torch.cuda.mem_get_info()
            self.held = [torch.empty(free - (64 << 20), dtype=torch.uint8, device=a.device)]
            return out
        return torch.add(a, b)
