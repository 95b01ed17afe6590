"""Converts gradients of outputs to whole multiples of 2^-20, below 8.

layer: correctness
mechanism: Normal numbers are neither larger, nor so small that it shows.
problem: norm_with_gradients
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        deviation, mean = torch.std_mean(x, dim=-1, correction=0, keepdim=True)
        ctx.scale = 1.0 / (deviation.square() + 1e-5).sqrt()
        ctx.save_for_backward(normal := (x - mean) * ctx.scale, weight)
        return normal * weight + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, weight = ctx.saved_tensors
        gradient = (gradient.double() * 2**20).round().clamp(-(2**23), 2**23).float() / 2**20
        scaled = gradient * weight
        means = scaled.mean(-1, keepdim=True) + normal * (scaled * normal).mean(-1, keepdim=True)
        of_weight = (gradient * normal).sum(0)
        return (scaled - means) * ctx.scale, of_weight, gradient.sum(0)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return Normalise.apply(x, self.norm.weight, self.norm.bias)
