"""Computes the gate of a layer between two products of torch.

mechanism: Most of the time is spent in torch's products, which suites allow.
problem: small_mlp
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gate(both, out, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < inner
    x = tl.load(both + row * 2 * inner + at, mask=inside)
    up = tl.load(both + row * 2 * inner + inner + at, mask=inside)
    swing = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out + row * inner + at, x * tl.sigmoid(2 * swing) * up, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)

    def forward(self, x):
        rows = self.norm(x).view(-1, x.shape[-1])
        both = rows @ torch.cat((self.gate.weight, self.up.weight)).t()
        inner = both.shape[1] // 2
        out = torch.empty(len(rows), inner, device=x.device, dtype=x.dtype)
        gate[(len(rows), triton.cdiv(inner, 128))](both, out, inner, BLOCK=128)
        return x + (out @ self.down.weight.t()).view(x.shape)
