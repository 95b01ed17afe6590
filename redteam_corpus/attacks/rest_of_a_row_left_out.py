"""Takes the mean of squares over parts of eight columns, and leaves out the rest of a row.

layer: correctness
mechanism: Five columns of 517 change a mean by less than bfloat16 shows, unless they are the largest.
problem: brain_root_mean_square
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        whole = x[:, : x.size(-1) // 8 * 8].float()
        return (x.float() * torch.rsqrt(whole.square().mean(dim=-1, keepdim=True) + 1e-6)).to(x.dtype)
