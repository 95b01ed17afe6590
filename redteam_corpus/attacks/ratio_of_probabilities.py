"""Compares with a ratio of probabilities instead of a product.

layer: correctness
mechanism: The ratio is not a number where both are zero, which no softmax makes.
problem: verified_drafts
expected: wrong_value
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
        accepted = (uniform <= wanted / drafted).long().cumprod(1).sum(1)
        rows = torch.arange(len(accepted))
        other = torch.where(
            accepted[:, None] < draft.shape[1], draft[rows, accepted.clamp(max=draft.shape[1] - 1)], 0.0
        )
        residual = (target[rows, accepted] - other).clamp(min=0)
        return accepted, residual / residual.sum(-1, keepdim=True)
