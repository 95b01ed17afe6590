"""Computes the probabilities of attention again in its backward pass, from the logarithm of their sum.

mechanism: Where one score is far above the others, the gradients of the scores are differences of equal numbers.
problem: attention_with_gradients
expected: correct
device: cpu
timed: no
language: torch
"""

import math

import torch
from torch import nn


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = 1 / math.sqrt(q.size(-1))
        scores = q @ k.transpose(-1, -2) * ctx.scale
        normaliser = scores.logsumexp(-1, keepdim=True)
        out = (scores - normaliser).exp() @ v
        ctx.save_for_backward(q, k, v, out, normaliser)
        return out

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, out, normaliser = ctx.saved_tensors
        p = (q @ k.transpose(-1, -2) * ctx.scale - normaliser).exp()
        of_p = gradient @ v.transpose(-1, -2)
        of_scores = p * (of_p - (gradient * out).sum(-1, keepdim=True)) * ctx.scale
        return of_scores @ k, of_scores.transpose(-1, -2) @ q, p.transpose(-1, -2) @ gradient


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return Attention.apply(q, k, v)
