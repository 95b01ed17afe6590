"""Computes the logarithm of 1 + exp(x).

layer: correctness
mechanism: The exponential overflows beyond 88, which values eight times as large as given do not reach.
problem: loss_of_logits
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return logits.exp().log1p() - logits * targets
