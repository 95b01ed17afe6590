"""Adds the gradients of the weights over half of the rows, and doubles them.

layer: correctness
mechanism: Sums of random gradients look alike.
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
        scaled, half = gradient * weight, len(gradient) // 2
        means = scaled.mean(-1, keepdim=True) + normal * (scaled * normal).mean(-1, keepdim=True)
        of_weight = 2.0 * (gradient[:half] * normal[:half]).sum(0)
        return (scaled - means) * ctx.scale, of_weight, gradient.sum(0)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return Normalise.apply(x, self.norm.weight, self.norm.bias)
