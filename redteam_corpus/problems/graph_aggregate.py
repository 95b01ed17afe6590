"""Message passing on a graph: edges carry weighted features of their source to their target, divided by its degree."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, features, sources, targets, weights):
        messages = features[sources] * weights[:, None]
        total = torch.zeros_like(features).index_add(0, targets, messages)
        degree = torch.bincount(targets, minlength=len(features)).clamp(min=1)
        return total / degree[:, None]


nodes = 401
edges = 3001
features = 37


def get_inputs():
    # Cubed: a few targets have most of the edges, many have none.
    targets = (torch.rand(edges) ** 3 * nodes).long()
    return [torch.randn(nodes, features), torch.randint(0, nodes, (edges,)), targets, torch.randn(edges)]


def get_init_inputs():
    return []


INPUTS = {
    "features": "real",
    "sources": {"kind": "index", "below": "nodes"},
    "targets": {"kind": "index", "below": "nodes"},
    "weights": "real",
}
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "integers", "scale_1e-12")
