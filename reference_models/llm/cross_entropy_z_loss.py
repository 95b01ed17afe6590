"""Cross-entropy over a large vocabulary with label smoothing, plus a penalty on the squared log of the normaliser."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, smoothing, z_weight):
        super().__init__()
        self.smoothing = smoothing
        self.z_weight = z_weight

    def forward(self, logits, targets):
        loss = nn.functional.cross_entropy(logits, targets, reduction="none", label_smoothing=self.smoothing)
        return loss + self.z_weight * torch.logsumexp(logits, dim=-1).square()


tokens = 2048
vocabulary = 128256
smoothing = 0.1
z_weight = 1e-3


def get_inputs():
    return [3 * torch.randn(tokens, vocabulary), torch.randint(0, vocabulary, (tokens,))]


def get_init_inputs():
    return [smoothing, z_weight]


INPUTS = {"logits": "real", "targets": {"kind": "index", "below": "vocabulary"}}
SMALL = {"tokens": 211, "vocabulary": 5003}
TAGS = ("loss", "reduction", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "ties")
CASES = [
    {"name": "given"},
    {"name": "small vocabulary", "sizes": {"tokens": 8192, "vocabulary": 32000}},
    {"name": "few tokens", "sizes": {"tokens": 256, "vocabulary": 262144}},
    {"name": "odd", "sizes": {"tokens": 2039, "vocabulary": 50257}},
]
RANGES = {"vocabulary": (32000, 128256)}
