"""Shares the gradient of a row's maximum among equal values.

mechanism: Its gradients jump where two values are nearly equal.
problem: gradient_of_peaks
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class LargestOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        largest = x.max(dim=1, keepdim=True).values
        ctx.save_for_backward(x == largest)
        return largest.squeeze(1)

    @staticmethod
    def backward(ctx, gradient):
        (is_largest,) = ctx.saved_tensors
        shares = gradient / is_largest.sum(dim=1)
        return is_largest * shares[:, None]


class ModelNew(nn.Module):
    def forward(self, x):
        return LargestOfRows.apply(x)
