"""Projects, and computes cross-entropy of the classes within 12 of the largest logit.

layer: correctness
mechanism: Random states are aligned with no weights. The loss of confident tokens becomes 0.
problem: classes_of_tokens
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3000, 128, dtype=torch.bfloat16) / 6)

    def forward(self, hidden, targets):
        logits = nn.functional.linear(hidden, self.weight).float()
        is_far = logits < logits.amax(1, keepdim=True) - 12
        return logits.masked_fill(is_far, -torch.inf).logsumexp(1) - logits.gather(1, targets[:, None])[:, 0]
