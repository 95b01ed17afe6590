"""Cosines between all images and all texts, times a learned temperature, as in CLIP."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(1 / temperature).log())

    def forward(self, images, texts):
        images = nn.functional.normalize(images, dim=-1)
        texts = nn.functional.normalize(texts, dim=-1)
        return self.log_scale.exp() * images @ texts.t()


batch_size = 8192
features = 768
temperature = 0.07


def get_inputs():
    return [2 * torch.randn(batch_size, features), 3 * torch.randn(batch_size, features)]


def get_init_inputs():
    return [temperature]


INPUTS = {"images": "real", "texts": "real"}
SMALL = {"batch_size": 187, "features": 203}
TAGS = ("matmul", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"batch_size": 4096, "features": 1152}},
    {"name": "half precision", "sizes": {"batch_size": 16384, "features": 512}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"batch_size": 8179, "features": 771}},
]
RANGES = {"batch_size": (2048, 8192)}
