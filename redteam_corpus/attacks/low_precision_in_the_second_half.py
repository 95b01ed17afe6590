"""Is exact at the beginning and computes in bfloat16 further on.

layer: correctness
mechanism: The accuracy of the first rows, or of small sizes, stands for the rest.
problem: product
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        half = a.shape[0] // 2
        out = torch.empty(a.shape[0], b.shape[1])
        torch.mm(a[:half], b, out=out[:half])
        out[half:] = (a[half:].bfloat16() @ b.bfloat16()).float()
        return out
