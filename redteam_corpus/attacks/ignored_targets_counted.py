"""Counts targets that are to be ignored.

layer: correctness
mechanism: Of 50,000 classes the ignored one is hardly ever drawn.
problem: ignored_targets
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return torch.logsumexp(logits, 1) - logits.gather(1, targets[:, None]).squeeze(1)
