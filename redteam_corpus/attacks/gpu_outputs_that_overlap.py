"""Returns two outputs that share half of their memory.

layer: correctness
mechanism: Each was right when it was written; together they need less memory.
problem: gpu_sum_and_difference
expected: wrong_value, wrong_shape, suspect
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, columns = a.shape
        both = torch.empty(rows * 3 // 2, columns, device=a.device)
        torch.add(a, b, out=both[:rows])
        torch.sub(a, b, out=both[rows // 2 :])
        return both[:rows], both[rows // 2 :]
