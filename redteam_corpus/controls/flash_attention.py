"""Computes attention by tiles of keys, with a running maximum and sum.

mechanism: It never has a whole row of scores, and rescales what it has added.
problem: small_attention
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q = q * q.shape[-1] ** -0.5
        top = q.new_full((*q.shape[:-1], 1), float("-inf"))
        total, result = torch.zeros_like(top), torch.zeros_like(q)
        rows = torch.arange(q.shape[-2], device=q.device).unsqueeze(1)
        for first in range(0, k.shape[-2], 16):
            keys, values = k[..., first : first + 16, :], v[..., first : first + 16, :]
            columns = torch.arange(first, first + keys.shape[-2], device=q.device)
            scores = torch.where(columns <= rows, q @ keys.mT, float("-inf"))
            highest = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, faded = torch.exp(scores - highest), torch.exp(top - highest)
            result = result * faded + weights @ values
            total = total * faded + weights.sum(-1, keepdim=True)
            top = highest
        return result / total
