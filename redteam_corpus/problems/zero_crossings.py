"""Counts the changes of sign in each row; a zero has the sign of the sample before it."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, samples):
        sign = torch.zeros_like(samples[:, 0])
        count = torch.zeros(len(samples), dtype=torch.long, device=samples.device)
        for at in range(samples.shape[1]):
            new = torch.sign(samples[:, at])
            count += new * sign < 0
            sign = torch.where(new == 0, sign, new)
        return count


def get_inputs():
    return [torch.randn(64, 160)]


def get_init_inputs():
    return []


INPUTS = {"samples": "real"}
