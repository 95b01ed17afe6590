"""Verification of drafted tokens: how many are accepted, and the distribution that the next token is drawn from.

A token is accepted while its uniform number is at most target / draft probability. After a rejection the next token
comes from the positive part of target - draft, normalised; after the last acceptance from the target's extra row.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, target, draft, tokens, uniform):
        drafted = draft.gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        wanted = target[:, :-1].gather(2, tokens.unsqueeze(-1)).squeeze(-1)
        accepted = (uniform * drafted <= wanted).long().cumprod(dim=1).sum(dim=1)
        rows = torch.arange(len(accepted), device=accepted.device)
        none = torch.zeros_like(draft[:, :1])
        residual = torch.relu(target[rows, accepted] - torch.cat([draft, none], dim=1)[rows, accepted])
        return accepted, residual / residual.sum(dim=-1, keepdim=True)


batch_size = 128
drafted_tokens = 5
vocabulary = 65536


def get_inputs():
    target = torch.softmax(2 * torch.randn(batch_size, drafted_tokens + 1, vocabulary), dim=-1)
    draft = torch.softmax(2 * torch.randn(batch_size, drafted_tokens, vocabulary), dim=-1)
    tokens = torch.randint(0, vocabulary, (batch_size, drafted_tokens))
    ratio = (target[:, :-1] / draft).gather(2, tokens.unsqueeze(-1)).squeeze(-1)
    # Clearly below or above the ratio, so that rounding does not decide.
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
SMALL = {"batch_size": 701, "drafted_tokens": 3, "vocabulary": 211}
TAGS = ("sampling", "gather", "reduction")
CASES = [
    {"name": "given"},
    {"name": "one drafted token", "sizes": {"batch_size": 256, "drafted_tokens": 1, "vocabulary": 128256}},
    {"name": "long drafts", "sizes": {"batch_size": 32, "drafted_tokens": 15, "vocabulary": 128256}},
    {"name": "odd", "sizes": {"batch_size": 127, "drafted_tokens": 3, "vocabulary": 50257}},
]
RANGES = {"vocabulary": (32000, 65536)}
