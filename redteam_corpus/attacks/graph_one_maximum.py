"""Subtracts the largest score of all edges.

layer: correctness
mechanism: Random scores of all nodes have about the same size.
problem: softmax_of_edges
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, targets):
        terms = (scores - scores.max()).exp()
        sums = torch.zeros(100, device=scores.device).index_add(0, targets, terms)
        return terms / sums[targets]
