"""Cross-entropy of each token after a projection to its class, in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3000, 128, dtype=torch.bfloat16) / 6)

    def forward(self, hidden, targets):
        logits = nn.functional.linear(hidden, self.weight).to(torch.promote_types(hidden.dtype, torch.float32))
        return nn.functional.cross_entropy(logits, targets, reduction="none")


def get_inputs():
    return [torch.randn(96, 128, dtype=torch.bfloat16), torch.randint(0, 3000, (96,))]


def get_init_inputs():
    return []


DISTRIBUTIONS = ("as_given", "uniform", "zeros")
