"""Sampling filter: softmax at a temperature per row over the k largest logits; all other tokens get zero."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, logits, temperature):
        scaled = logits / temperature.unsqueeze(-1)
        least = torch.topk(scaled, self.k, dim=-1).values[:, -1:]
        return torch.softmax(scaled.masked_fill(scaled < least, float("-inf")), dim=-1)


batch_size = 1024
vocabulary = 65536
k = 50


def get_inputs():
    # Logits of a row are apart from each other, so that there is one right set.
    ranks = torch.rand(batch_size, vocabulary).argsort(dim=-1).float()
    logits = (ranks + 0.5 * torch.rand(batch_size, vocabulary) - vocabulary) / 16
    # Few rows have another level, which changes no probability.
    level = 200 * (torch.rand(batch_size, 1) - 0.5) * (torch.rand(batch_size, 1) < 0.1)
    return [logits + level, 0.5 + torch.rand(batch_size)]


def get_init_inputs():
    return [k]


INPUTS = {"logits": {"kind": "real", "distinct": True}, "temperature": {"kind": "real", "low": 0.05}}
SMALL = {"batch_size": 37, "vocabulary": 4099, "k": 13}
TAGS = ("sampling", "selection", "reduction")
CASES = [
    {"name": "given"},
    {"name": "large k", "sizes": {"batch_size": 512, "k": 1000}},
    {"name": "few requests", "sizes": {"batch_size": 16, "vocabulary": 151936}},
    {"name": "odd", "sizes": {"batch_size": 1021, "vocabulary": 50257, "k": 41}},
]
RANGES = {"vocabulary": (32000, 65536)}
