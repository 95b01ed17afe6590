"""Chooses the likely experts by logits in bfloat16, then orders these.

layer: correctness
mechanism: Few logits are so close that a wrong expert is chosen.
problem: routed_tokens
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits):
        likely = logits.bfloat16().topk(10, dim=-1).indices.sort(dim=-1).values
        values, places = logits.gather(1, likely).topk(5, dim=-1)
        places = likely.gather(1, places)
        return values.softmax(-1), places, torch.bincount(places.flatten(), minlength=37)
