"""Cross-entropy of each sample (no mean over the batch), with integer targets."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, logits, targets):
        return nn.functional.cross_entropy(logits, targets, reduction="none")


batch_size = 16384
classes = 8192


def get_inputs():
    return [torch.randn(batch_size, classes), torch.randint(0, classes, (batch_size,))]


def get_init_inputs():
    return []


INPUTS = {"logits": "real", "targets": {"kind": "index", "below": "classes"}}
SMALL = {"batch_size": 1103, "classes": 1013}
TAGS = ("loss", "reduction")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "ties")
CASES = [
    {"name": "given"},
    {"name": "large vocabulary", "sizes": {"batch_size": 2048, "classes": 65536}},
    {"name": "odd", "sizes": {"batch_size": 16381, "classes": 8191}},
]
RANGES = {"classes": (1000, 8192)}
