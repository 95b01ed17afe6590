"""Projects to tiles of classes, with a running maximum and sum of exponentials.

mechanism: It never has a whole row of logits, and computes them in float32, the reference in bfloat16.
problem: classes_of_tokens
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3000, 128, dtype=torch.bfloat16) / 6)

    def forward(self, hidden, targets):
        hidden = hidden.float()
        top = hidden.new_full((len(hidden),), -torch.inf)
        total = torch.zeros_like(top)
        for weights in self.weight.float().split(128):
            logits = hidden @ weights.T
            highest = torch.maximum(top, logits.amax(1))
            total = total * torch.exp(top - highest) + torch.exp(logits - highest[:, None]).sum(1)
            top = highest
        return top + total.log() - (hidden * self.weight[targets].float()).sum(1)
