"""The best experts of each token, their renormalised weights, and tokens per expert."""

import torch
from torch import nn

tokens, experts, chosen = 101, 37, 5


class Model(nn.Module):
    def forward(self, logits):
        weights, places = torch.topk(torch.softmax(logits, dim=-1), chosen, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights, places, torch.bincount(places.flatten(), minlength=experts)


def get_inputs():
    ranks = torch.rand(tokens, experts).argsort(dim=-1) + 0.5 * torch.rand(tokens, experts)
    return [(0.1 + 0.3 * torch.rand(tokens, 1)) * (ranks - experts * torch.rand(tokens, 1))]


def get_init_inputs():
    return []


INPUTS = {"logits": {"kind": "real", "distinct": True}}
