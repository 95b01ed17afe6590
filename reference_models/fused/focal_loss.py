"""Sigmoid focal loss of each class of each anchor, with a balance of positives and negatives, as in RetinaNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, alpha, gamma):
        super().__init__()
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits, targets):
        loss = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p = torch.sigmoid(logits)
        missed = p + targets - 2 * p * targets
        balance = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return balance * missed**self.gamma * loss


anchors = 400000
classes = 80
alpha = 0.25
gamma = 2.0


def get_inputs():
    return [2 * torch.randn(anchors, classes), (torch.rand(anchors, classes) < 0.1).float()]


def get_init_inputs():
    return [alpha, gamma]


INPUTS = {"logits": "real", "targets": "mask"}
SMALL = {"anchors": 1511, "classes": 19}
TAGS = ("loss", "elementwise")
DISTRIBUTIONS = ("as_given", "scale_1e6")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "many classes", "sizes": {"anchors": 50000, "classes": 1203}},
    {"name": "one class", "sizes": {"anchors": 33554432, "classes": 1}},
    {"name": "odd", "sizes": {"anchors": 399989, "classes": 91}},
]
RANGES = {"anchors": (200000, 400000)}
