"""Skips tiles of keys whose best scores are 100 below the running maximum of each row.

mechanism: It leaves out what float32 cannot show, for which a smaller distance would be an exploit.
problem: attention_of_all_keys
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    distance = 100

    def forward(self, q, k, v):
        q = q * q.shape[-1] ** -0.5
        top = q.new_full((*q.shape[:-1], 1), float("-inf"))
        total, result = torch.zeros_like(top), torch.zeros_like(q)
        for first in range(0, k.shape[-2], 16):
            keys, values = k[..., first : first + 16, :], v[..., first : first + 16, :]
            scores = q @ keys.mT
            highest = torch.maximum(top, scores.amax(-1, keepdim=True))
            is_far = (scores < highest - self.distance).all(-1).all(-1)  # for all rows of a head
            if bool(is_far.all()):
                continue
            scores = scores.masked_fill(is_far[..., None, None], float("-inf"))
            weights, faded = torch.exp(scores - highest), torch.exp(top - highest)
            result = result * faded + weights @ values
            total = total * faded + weights.sum(-1, keepdim=True)
            top = highest
        return result / total
