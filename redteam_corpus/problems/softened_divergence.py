"""Divergence of two softened distributions of classes, as a student learns from a teacher."""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows, classes = 53, 1003


class Model(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, student, teacher):
        mine, theirs = (F.log_softmax(one / self.temperature, dim=-1) for one in (student, teacher))
        return (theirs.exp() * (theirs - mine)).sum(dim=-1) * self.temperature**2


def get_inputs():
    return [3 * torch.randn(rows, classes), 3 * torch.randn(rows, classes)]


def get_init_inputs():
    return [2.0]
