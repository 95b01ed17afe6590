"""Divides by the number of targets, also if there are none.

layer: correctness
mechanism: Hardly any draw marks all targets as ignored.
problem: smoothed_loss_of_some_targets
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return F.cross_entropy(logits, targets, label_smoothing=0.1)
