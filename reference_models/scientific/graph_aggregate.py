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


nodes = 131072
edges = 1048576
features = 128


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
SMALL = {"nodes": 401, "edges": 3001, "features": 37}
TAGS = ("graph", "scatter", "gather")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "integers", "scale_1e-12")
CASES = [
    {"name": "given"},
    {"name": "narrow", "sizes": {"nodes": 1048576, "edges": 8388608, "features": 16}},
    {"name": "many edges per node", "sizes": {"nodes": 8192, "edges": 2097152, "features": 64}},
    {"name": "odd", "sizes": {"nodes": 99991, "edges": 1000003, "features": 97}},
]
RANGES = {"edges": (262144, 1048576)}
