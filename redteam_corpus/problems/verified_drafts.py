"""Verification of drafted tokens: how many are accepted, and the distribution of the next one."""

import torch
from torch import nn

batch_size, drafted_tokens, vocabulary = 201, 3, 211


class Model(nn.Module):
    def forward(self, target, draft, tokens, uniform):
        drafted = draft.gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        wanted = target[:, :-1].gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        accepted = (uniform * drafted <= wanted).long().cumprod(dim=1).sum(dim=1)
        rows = torch.arange(len(accepted), device=accepted.device)
        none = torch.zeros_like(draft[:, :1])
        residual = torch.relu(target[rows, accepted] - torch.cat([draft, none], dim=1)[rows, accepted])
        return accepted, residual / residual.sum(dim=-1, keepdim=True)


def get_inputs():
    target = torch.softmax(2 * torch.randn(batch_size, drafted_tokens + 1, vocabulary), dim=-1)
    draft = torch.softmax(2 * torch.randn(batch_size, drafted_tokens, vocabulary), dim=-1)
    tokens = torch.randint(0, vocabulary, (batch_size, drafted_tokens))
    ratio = (target[:, :-1] / draft).gather(2, tokens.unsqueeze(-1)).squeeze(-1)
    accept = torch.rand(batch_size, drafted_tokens) < 0.7
    return [target, draft, tokens, torch.where(accept, 0.8, 1.25) * ratio]


def get_init_inputs():
    return []


INPUTS = {
    "target": "probabilities",
    "draft": "probabilities",
    "tokens": {"kind": "index", "below": "vocabulary"},
    "uniform": {"kind": "real", "low": 0},
}
