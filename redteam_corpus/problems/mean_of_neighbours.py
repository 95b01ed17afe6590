"""Means of messages that edges of a graph carry to their targets."""

import torch
from torch import nn

nodes, edges, features = 41, 3001, 17


class Model(nn.Module):
    def forward(self, x, sources, targets, weights):
        total = torch.zeros_like(x).index_add(0, targets, x[sources] * weights[:, None])
        degree = torch.bincount(targets, minlength=nodes).clamp(min=1)
        return total / degree[:, None]


def get_inputs():
    targets = (torch.rand(edges) ** 3 * nodes).long()
    return [torch.randn(nodes, features), torch.randint(0, nodes, (edges,)), targets, torch.randn(edges)]


def get_init_inputs():
    return []


INPUTS = {
    "x": "real",
    "sources": {"kind": "index", "below": "nodes"},
    "targets": {"kind": "index", "below": "nodes"},
    "weights": "real",
}
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "integers")
