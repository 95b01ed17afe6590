"""Adds the logarithm of a running sum to the largest value so far, in the manner of an online softmax.

mechanism: The logarithm of a sum that is nearly one has the roundings of all its terms.
problem: running_logsumexp
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        most, total = x[..., 0], torch.ones_like(x[..., 0])
        results = [most]
        for step in range(1, x.size(-1)):
            new = torch.maximum(most, x[..., step])
            total = total * (most - new).exp() + (x[..., step] - new).exp()
            most = new
            results.append(most + total.log())
        return torch.stack(results, dim=-1)
