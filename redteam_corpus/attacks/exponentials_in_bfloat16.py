"""Rounds exponentials to bfloat16 before they are added.

layer: correctness
mechanism: The roundings of thousands of terms cancel.
problem: smoothed_loss
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        largest = logits.amax(-1, keepdim=True)
        total = largest[:, 0] + torch.log(torch.exp(logits - largest).bfloat16().float().sum(-1))
        named = logits.gather(1, targets[:, None])[:, 0]
        return total - 0.9 * named - 0.1 * logits.mean(-1) + 1e-3 * total.square()
