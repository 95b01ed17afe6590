"""Projection to a large vocabulary and cross-entropy of each token; some targets are ignored."""

import torch
import torch.nn as nn

IGNORED = -1


class Model(nn.Module):
    def __init__(self, features, vocabulary):
        super().__init__()
        weight = torch.randn(vocabulary, features, dtype=torch.bfloat16)
        self.weight = nn.Parameter(2 * weight / features**0.5)

    def forward(self, hidden, targets):
        logits = nn.functional.linear(hidden, self.weight).to(torch.promote_types(hidden.dtype, torch.float32))
        return nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="none")


tokens = 4096
features = 2048
vocabulary = 65536


def get_inputs():
    targets = torch.randint(0, vocabulary, (tokens,))
    targets = targets.masked_fill(torch.rand(tokens) < 0.2, IGNORED)
    return [torch.randn(tokens, features, dtype=torch.bfloat16), targets]


def get_init_inputs():
    return [features, vocabulary]


INPUTS = {"hidden": "real", "targets": {"kind": "index", "below": "vocabulary", "also": -1}}
SMALL = {"tokens": 97, "features": 152, "vocabulary": 3001}
TAGS = ("loss", "matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "large vocabulary", "sizes": {"tokens": 2048, "vocabulary": 128256}},
    {"name": "wide", "sizes": {"tokens": 4096, "features": 4096, "vocabulary": 32000}},
    {"name": "odd", "sizes": {"tokens": 4001, "features": 1600, "vocabulary": 50257}},
]
RANGES = {"tokens": (1000, 4096)}
