"""All products of pairs of feature vectors of a sample, beside its dense features, as in recommendation models."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        first, second = torch.tril_indices(vectors, vectors, -1)
        self.register_buffer("first", first)
        self.register_buffer("second", second)

    def forward(self, dense, vectors):
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return torch.cat([dense, products[:, self.first, self.second]], dim=1)


batch_size = 16384
vectors = 27
features = 128


def get_inputs():
    return [torch.randn(batch_size, features), torch.randn(batch_size, vectors, features)]


def get_init_inputs():
    return [vectors]


INPUTS = {"dense": "real", "vectors": "real"}
SMALL = {"batch_size": 103, "vectors": 13, "features": 37}
TAGS = ("matmul", "gather", "layout")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many vectors", "sizes": {"batch_size": 4096, "vectors": 101, "features": 64}},
    {"name": "narrow", "sizes": {"batch_size": 131072, "features": 16}},
    {"name": "odd", "sizes": {"batch_size": 16381, "vectors": 29, "features": 61}},
]
RANGES = {"batch_size": (16384, 32768), "vectors": (16, 40)}
