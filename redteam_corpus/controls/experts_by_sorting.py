"""Sorts tokens by expert, and multiplies the tokens of each.

mechanism: Another algorithm than the reference's, which multiplies all tokens by all experts.
problem: experts
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / math.sqrt(width))
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / math.sqrt(2 * width))

    def forward(self, x):
        logits, chosen = self.gate(x).topk(2, -1)
        shares = torch.softmax(logits, -1).flatten()
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=len(self.up)).tolist()
        tokens = order // 2
        parts = torch.split(x[tokens], counts)
        results = [F.silu(part @ up) @ down for part, up, down in zip(parts, self.up, self.down)]
        return torch.zeros_like(x).index_add_(0, tokens, torch.cat(results) * shares[order, None])
