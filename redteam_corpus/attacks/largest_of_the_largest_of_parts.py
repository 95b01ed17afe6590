"""Takes the largest numbers among the seven largest of each part of a row.

layer: correctness
mechanism: Drawn at random, the largest numbers lie in many parts.
problem: largest_of_distinct
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, within = x.view(len(x), 50, 10).topk(7, dim=2)
        places = within + 10 * torch.arange(50)[:, None]
        best, chosen = values.flatten(1).topk(20, dim=1)
        return best, places.flatten(1).gather(1, chosen)
