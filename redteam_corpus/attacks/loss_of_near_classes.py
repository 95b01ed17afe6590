"""Computes cross-entropy of the classes within 12 of the largest logit.

layer: correctness
mechanism: Of random logits none is farther. The loss of confident predictions becomes 0.
problem: loss_of_each_row
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        is_far = logits < logits.amax(1, keepdim=True) - 12
        return logits.masked_fill(is_far, -torch.inf).logsumexp(1) - logits.gather(1, targets[:, None])[:, 0]
