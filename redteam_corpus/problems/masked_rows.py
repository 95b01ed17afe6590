import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax where a mask allows; rows without any get zeros."""

    def forward(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, float("-inf")), -1).nan_to_num(0.0)


def get_inputs():
    return [torch.randn(64, 128, 128), torch.rand(64, 128, 128) < 0.6]


def get_init_inputs():
    return []
