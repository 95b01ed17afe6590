"""Subtracts the target's logit from the logarithm of the sum, as most fused kernels do.

mechanism: The small loss of a target that is nearly certain is the difference of two large values, which is zero.
problem: loss_of_large_logits
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        most = logits.amax(dim=1, keepdim=True)
        total = (logits - most).exp().sum(dim=1)
        return total.log() + most[:, 0] - logits.gather(1, targets[:, None])[:, 0]
