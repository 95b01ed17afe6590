"""Router of a mixture of experts: the best experts of each token, their renormalised weights, tokens per expert."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen

    def forward(self, logits):
        weights, experts = torch.topk(torch.softmax(logits, dim=-1), self.chosen, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights, experts, torch.bincount(experts.flatten(), minlength=logits.size(-1))


tokens = 65536
experts = 128
chosen = 8


def get_inputs():
    # No two logits of a token are nearly equal, so that there is one right order.
    ranks = torch.rand(tokens, experts).argsort(dim=-1) + 0.5 * torch.rand(tokens, experts)
    # Few rows have another level, which changes no probability.
    level = 200 * (torch.rand(tokens, 1) - 0.5) * (torch.rand(tokens, 1) < 0.1)
    return [(0.1 + 0.3 * torch.rand(tokens, 1)) * (ranks - experts * torch.rand(tokens, 1)) + level]


def get_init_inputs():
    return [chosen]


INPUTS = {"logits": {"kind": "real", "distinct": True}}
SMALL = {"tokens": 1511, "experts": 37, "chosen": 5}
TAGS = ("moe", "selection", "reduction")
CASES = [
    {"name": "given"},
    {"name": "two of eight", "sizes": {"tokens": 1048576, "experts": 8, "chosen": 2}},
    {"name": "many experts", "sizes": {"tokens": 32768, "experts": 256}},
    {"name": "odd", "sizes": {"tokens": 65521, "experts": 61, "chosen": 5}},
]
RANGES = {"tokens": (32768, 131072)}
