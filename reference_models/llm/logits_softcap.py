"""Projection of hidden states to logits, limited by a scaled tanh."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, vocabulary, cap):
        super().__init__()
        weight = torch.randn(vocabulary, features, dtype=torch.bfloat16)
        # Logits of about the cap's size: leaving it out must show.
        self.weight = nn.Parameter(cap * weight / features**0.5)
        self.cap = cap

    def forward(self, hidden):
        logits = nn.functional.linear(hidden, self.weight)
        return self.cap * torch.tanh(logits / self.cap)


tokens = 2048
features = 2304
vocabulary = 65536
cap = 30.0


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, vocabulary, cap]


INPUTS = {"hidden": "real"}
SMALL = {"tokens": 73, "features": 232, "vocabulary": 1003}
TAGS = ("matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "decode", "sizes": {"tokens": 32, "vocabulary": 256000}},
    {"name": "wide", "sizes": {"tokens": 1024, "features": 4608, "vocabulary": 128256}},
    {"name": "odd", "sizes": {"tokens": 2039, "vocabulary": 50257}},
]
RANGES = {"tokens": (256, 2048)}
