"""Sorts the edges by nodes, and adds them up as rows.

mechanism: Other sums of the same terms.
problem: softmax_of_edges
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, targets):
        rows = torch.where(targets == torch.arange(100)[:, None], scores, float("-inf"))
        return torch.softmax(rows, dim=1).nan_to_num(0.0).sum(dim=0)
