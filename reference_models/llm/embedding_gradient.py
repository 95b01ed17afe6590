"""Gradient of an embedding table: rows are added up per token, few tokens being frequent; a padding token gets none."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vocabulary, padding_token):
        super().__init__()
        self.vocabulary = vocabulary
        self.padding_token = padding_token

    def forward(self, gradient, tokens):
        return torch.ops.aten.embedding_dense_backward(gradient, tokens, self.vocabulary, self.padding_token, False)


batch_size = 32
sequence_length = 2048
vocabulary = 65536
features = 1024
padding_token = 1


def get_inputs():
    # The cube of a uniform number: low tokens occur far more often than high ones.
    tokens = (torch.rand(batch_size, sequence_length) ** 3 * vocabulary).long()
    return [torch.randn(batch_size, sequence_length, features), tokens]


def get_init_inputs():
    return [vocabulary, padding_token]


INPUTS = {"gradient": "real", "tokens": {"kind": "index", "below": "vocabulary"}}
SMALL = {"batch_size": 5, "sequence_length": 109, "vocabulary": 401, "features": 307}
TAGS = ("scatter", "backward")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "scale_1e-12")
CASES = [
    {"name": "given"},
    {"name": "large vocabulary", "sizes": {"vocabulary": 262144, "features": 640}},
    {"name": "small vocabulary", "sizes": {"vocabulary": 256, "features": 2048}},
    {"name": "odd", "sizes": {"batch_size": 29, "sequence_length": 2011, "vocabulary": 50257, "features": 771}},
]
RANGES = {"sequence_length": (512, 2048)}
