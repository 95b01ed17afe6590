"""Attention whose backward pass is written out, as in flash attention.

mechanism: Where one key is left its gradients cancel up to roundings, which are exactly zero in the reference.
problem: attention_to_one_key
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask):
        scale = q.shape[-1] ** -0.5
        s = (q * scale) @ k.transpose(-1, -2)
        s = torch.where(mask[:, None, None], s, -torch.inf)
        lse = torch.logsumexp(s, -1, keepdim=True)
        o = torch.exp(s - lse) @ v
        ctx.save_for_backward(q, k, v, mask, lse, o)
        return o

    @staticmethod
    def backward(ctx, g):
        q, k, v, mask, lse, o = ctx.saved_tensors
        scale = q.shape[-1] ** -0.5
        s = (q * scale) @ k.transpose(-1, -2)
        w = torch.exp(torch.where(mask[:, None, None], s, -torch.inf) - lse)
        delta = (g * o).sum(-1, keepdim=True)
        ds = w * (g @ v.transpose(-1, -2) - delta) * scale
        return ds @ k, ds.transpose(-1, -2) @ q, w.transpose(-1, -2) @ g, None


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        return Attention.apply(q, k, v, mask)
