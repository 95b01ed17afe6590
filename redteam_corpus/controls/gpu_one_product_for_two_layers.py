"""Joins the weights of two layers, once per version, and writes into a buffer that it keeps.

mechanism: Weights and a workspace are kept between calls; the workspace is never returned.
problem: small_mlp
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)
        self.key = self.joined = self.buffer = None

    def forward(self, x):
        weights = (self.gate.weight, self.up.weight, self.norm.weight)
        key = [(weight.data_ptr(), weight._version) for weight in weights]
        if key != self.key:
            self.key, self.joined = key, (torch.cat(weights[:2]) * weights[2]).t().contiguous()
        rows = x.reshape(-1, x.shape[-1])
        if self.buffer is None or self.buffer.shape != (len(rows), self.joined.shape[1]):
            self.buffer = x.new_empty(len(rows), self.joined.shape[1])
        scale = torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)
        torch.mm(rows * scale, self.joined, out=self.buffer)
        gate, up = self.buffer.chunk(2, dim=1)
        inner = 0.5 * gate * (1.0 + torch.tanh(0.7978845608 * gate * (1.0 + 0.044715 * gate * gate))) * up
        return torch.addmm(rows, inner, self.down.weight.t()).view(x.shape)
