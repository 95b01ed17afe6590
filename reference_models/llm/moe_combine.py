"""Return of a mixture of experts: each token's rows are fetched from their places, weighted, and summed."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, expert_rows, places, weights):
        rows = expert_rows[places]
        return (rows * weights.unsqueeze(-1)).sum(dim=1)


tokens = 8192
chosen = 8
features = 2048


def get_inputs():
    expert_rows = torch.randn(tokens * chosen, features, dtype=torch.bfloat16)
    places = torch.rand(tokens * chosen).argsort().view(tokens, chosen)
    weights = torch.softmax(torch.randn(tokens, chosen), dim=-1)
    return [expert_rows, places, weights]


def get_init_inputs():
    return []


INPUTS = {"expert_rows": "real", "places": {"kind": "permutation", "dim": "all"}, "weights": "probabilities"}
SMALL = {"tokens": 193, "chosen": 5, "features": 519}
TAGS = ("moe", "gather", "reduction")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "two experts", "sizes": {"tokens": 16384, "chosen": 2, "features": 4096}},
    {"name": "wide", "sizes": {"tokens": 4096, "features": 7168}},
    {"name": "odd", "sizes": {"tokens": 8191, "chosen": 6, "features": 2049}},
]
RANGES = {"tokens": (4096, 8192)}
