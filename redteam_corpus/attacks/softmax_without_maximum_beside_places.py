"""Leaves out the maximum of a softmax, where places are returned, too.

layer: correctness
mechanism: The reference also returns integers, which larger values could change.
problem: classes_and_probabilities
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits):
        powers = torch.exp(logits)
        return powers / powers.sum(-1, keepdim=True), logits.argmax(-1)
