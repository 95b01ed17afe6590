"""Sampling filter: the most probable tokens of a row until their sum reaches the row's p, renormalised."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, logits, p):
        probabilities = torch.softmax(logits, dim=-1)
        ordered, tokens = probabilities.sort(dim=-1, descending=True)
        before = ordered.cumsum(dim=-1) - ordered
        kept = ordered.masked_fill(before >= p.unsqueeze(-1), 0.0)
        kept = kept / kept.sum(dim=-1, keepdim=True)
        return torch.zeros_like(kept).scatter(-1, tokens, kept)


batch_size = 512
vocabulary = 32768
most_kept = 20


def get_inputs():
    # Probabilities fall by about the same factor from rank to rank, and p is halfway between two partial sums, so that
    # rounding does not decide which tokens stay.
    ranks = torch.rand(batch_size, vocabulary).argsort(dim=-1) + 0.1 * torch.rand(batch_size, vocabulary)
    slope = 0.05 + 0.1 * torch.rand(batch_size)
    count = torch.randint(1, most_kept + 1, (batch_size,))
    p = 1 - torch.exp(-slope * count) * (1 + torch.exp(slope)) / 2
    # Few rows have another level, which changes no probability.
    level = 200 * (torch.rand(batch_size, 1) - 0.5) * (torch.rand(batch_size, 1) < 0.1)
    return [level - slope.unsqueeze(-1) * ranks, p]


def get_init_inputs():
    return []


INPUTS = {"logits": {"kind": "real", "distinct": True}, "p": {"kind": "real", "low": 0, "high": 1}}
SMALL = {"batch_size": 29, "vocabulary": 2053}
TAGS = ("sampling", "selection", "scan")
CASES = [
    {"name": "given"},
    {"name": "more kept", "sizes": {"most_kept": 40}},
    {"name": "few requests", "sizes": {"batch_size": 16, "vocabulary": 128256}},
    {"name": "odd", "sizes": {"batch_size": 509, "vocabulary": 50257}},
]
RANGES = {"vocabulary": (16000, 32768)}
