"""Orders experts by keys whose last six bits are those of their number.

layer: correctness
mechanism: The given logits of a token are at least a twentieth apart; the problem says only that they differ.
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
        bits = logits.contiguous().view(torch.int32)
        keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        numbers = torch.arange(logits.size(1), dtype=torch.int32, device=logits.device)
        packed = (keys & ~63) | (63 - numbers)
        places = 63 - (torch.topk(packed, 5, dim=-1).values & 63).long()
        weights = torch.softmax(logits.gather(-1, places), dim=-1)
        return weights, places, torch.bincount(places.flatten(), minlength=logits.size(1))
