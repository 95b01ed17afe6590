"""Mean cross-entropy in bfloat16, with gradients."""

import torch
import torch.nn.functional as F
from torch import nn

BACKWARD = True


class Model(nn.Module):
    def forward(self, logits, targets):
        return F.cross_entropy(logits, targets)


def get_inputs():
    return [torch.randn(64, 1000, dtype=torch.bfloat16), torch.randint(0, 1000, (64,))]


def get_init_inputs():
    return []
