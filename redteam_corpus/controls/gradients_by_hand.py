"""Has the backward pass of a layer normalisation of its own.

mechanism: Sums over rows in another order than the reference's.
problem: norm_with_gradients
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        scale = torch.rsqrt(variance + 1e-5)
        normal = (x - mean) * scale
        ctx.save_for_backward(normal, scale, weight)
        return torch.addcmul(bias, normal, weight)

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, weight = ctx.saved_tensors
        scaled = gradient * weight
        along = torch.einsum("rc,rc->r", scaled, normal).unsqueeze(1) / normal.shape[1]
        of_x = (scaled - scaled.mean(-1, keepdim=True) - normal * along) * scale
        return of_x, torch.einsum("rc,rc->c", gradient, normal), gradient.new_ones(len(gradient)) @ gradient


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return Normalise.apply(x, self.norm.weight, self.norm.bias)
