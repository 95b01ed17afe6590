"""Subtracts the target's logit from the logarithm of the sum, both in bfloat16.

mechanism: Of a target that is nearly certain the logarithm, rounded to 8 bits, is the logit itself: the loss is zero.
problem: loss_in_16_bits
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        chosen = logits.gather(-1, targets[:, None]).squeeze(-1)
        return (torch.logsumexp(logits, dim=-1) - chosen).mean()
