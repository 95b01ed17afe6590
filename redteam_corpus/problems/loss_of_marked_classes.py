"""Cross entropy with targets as rows of marks."""

import torch
from torch import nn
from torch.nn import functional

rows, classes = 200, 64


class Model(nn.Module):
    def forward(self, logits, targets):
        return -(targets * functional.log_softmax(logits, dim=1)).sum(dim=1)


def get_inputs():
    places = torch.randint(classes, (rows,))
    return [torch.randn(rows, classes), functional.one_hot(places, classes).float()]


def get_init_inputs():
    return []
