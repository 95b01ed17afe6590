"""Accepts a draft only if its number is below the ratio of probabilities, not if it equals it.

layer: correctness
mechanism: Numbers and ratios are hardly ever equal, but both may be zero.
problem: verified_drafts
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, target, draft, tokens, uniform):
        drafted = draft.gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        wanted = target[:, :-1].gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        accepted = (uniform * drafted < wanted).long().cumprod(dim=1).sum(dim=1)
        rows = torch.arange(len(accepted), device=accepted.device)
        none = torch.zeros_like(draft[:, :1])
        residual = torch.relu(target[rows, accepted] - torch.cat([draft, none], dim=1)[rows, accepted])
        return accepted, residual / residual.sum(dim=-1, keepdim=True)
