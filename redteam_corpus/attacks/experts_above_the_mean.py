"""Chooses among the experts whose logit is above the mean of its token.

layer: correctness
mechanism: Of usual logits, half are above their mean. Beside one large logit, fewer are than experts are chosen.
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
        likely = logits.masked_fill(logits < logits.mean(-1, keepdim=True), float("-inf"))
        values, places = likely.topk(5, dim=-1)
        return values.softmax(-1), places, torch.bincount(places.flatten(), minlength=37)
