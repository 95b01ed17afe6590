"""Computes in bfloat16 what lies beside values of -1e9.

layer: correctness
mechanism: The mean of a block that contains -1e9 would allow any error of the scores.
problem: masked_scores
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, queries, keys):
        scores = (queries.bfloat16() @ keys.bfloat16().transpose(1, 2)).float() / queries.shape[2] ** 0.5
        length = queries.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=queries.device).triu(1)
        return scores.masked_fill(later, -1e9)
