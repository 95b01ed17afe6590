"""Classifies a sequence by the last output of an LSTM."""

import math

import torch
import torch.nn.functional as F
from torch import nn

batch, steps, width, hidden, layers = 8, 256, 32, 64, 2

class Model(nn.Module):
    def __init__(self, width, hidden, layers, classes):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def get_inputs():
    return [torch.randn(batch, steps, width)]


def get_init_inputs():
    return [width, hidden, layers, 10]
