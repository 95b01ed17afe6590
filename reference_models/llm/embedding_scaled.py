"""Token and position embeddings: rows of one table times the root of their length, plus rows of another."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vocabulary, positions, features):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(vocabulary, features) / features**0.5)
        self.positions = nn.Parameter(torch.randn(positions, features))

    def forward(self, tokens):
        rows = nn.functional.embedding(tokens, self.tokens) * self.tokens.size(1) ** 0.5
        return rows + self.positions[: tokens.size(1)]


batch_size = 16
sequence_length = 2048
vocabulary = 65536
features = 2048


def get_inputs():
    return [torch.randint(0, vocabulary, (batch_size, sequence_length))]


def get_init_inputs():
    return [vocabulary, sequence_length, features]


INPUTS = {"tokens": {"kind": "index", "below": "vocabulary"}}
SMALL = {"batch_size": 5, "sequence_length": 107, "vocabulary": 2003, "features": 391}
TAGS = ("gather", "elementwise", "fusion")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "short sequences", "sizes": {"batch_size": 512, "sequence_length": 128, "features": 1024}},
    {"name": "half precision", "sizes": {"batch_size": 64, "vocabulary": 262144, "features": 640}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"batch_size": 31, "sequence_length": 2039, "vocabulary": 50257, "features": 1025}},
]
RANGES = {"sequence_length": (512, 2048)}
