"""Computes running sums of exponentials by doubling the distance of what is added.

mechanism: Each step takes logarithms, and small terms are added to large sums.
problem: running_logsumexp
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        distance = 1
        while distance < x.shape[1]:
            x = torch.cat([x[:, :distance], torch.logaddexp(x[:, distance:], x[:, :-distance])], dim=1)
            distance *= 2
        return x
