"""The program that comes last decides, through an atomic exchange.

forward: x[-1:].clone()
inputs: x=torch.arange(64, dtype=torch.int32)
finding: order
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out):
    tl.atomic_xchg(out, tl.load(x + tl.program_id(0)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, dtype=torch.int32, device=x.device)
        kernel[(x.numel(),)](x, out)
        return out
