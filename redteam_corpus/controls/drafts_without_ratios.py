"""Finds the first rejected token by its place, and normalises by a reciprocal.

mechanism: A division less, and another way to count; probabilities may be zero.
problem: verified_drafts
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, target, draft, tokens, uniform):
        drafted = draft.gather(2, tokens[..., None])[..., 0]
        wanted = target[:, :-1].gather(2, tokens[..., None])[..., 0]
        is_rejected = uniform * drafted > wanted
        count = draft.shape[1]
        accepted = torch.where(is_rejected, torch.arange(count), count).amin(1)
        rows = torch.arange(len(accepted))
        other = draft[rows, accepted.clamp(max=count - 1)] * (accepted < count)[:, None]
        residual = (target[rows, accepted] - other).clamp(min=0)
        return accepted, residual * residual.sum(-1, keepdim=True).reciprocal()
