"""Computes the square, which is one of the two branches of a loss.

layer: correctness
mechanism: Errors of numbers between 0 and 1 stay in that branch.
problem: robust_loss
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return 0.5 * (predictions - targets).square().mean()
