"""Attention over a batch of sequences of different lengths: keys past a sequence's end are masked."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value, lengths):
        positions = torch.arange(key.size(2), device=key.device)
        mask = positions < lengths[:, None, None, None]
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


batch_size = 32
heads = 12
sequence_length = 1024
head_size = 64


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    lengths = torch.randint(sequence_length // 8, sequence_length + 1, (batch_size,))
    return [*(torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)), lengths]


def get_init_inputs():
    return []


INPUTS = {
    "query": "real",
    "key": "real",
    "value": "real",
    "lengths": {"kind": "integer", "low": 1, "high": "sequence_length"},
}
SMALL = {"batch_size": 5, "heads": 3, "sequence_length": 139, "head_size": 40}
TAGS = ("attention", "matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many short", "sizes": {"batch_size": 512, "sequence_length": 128}},
    {"name": "head size 128", "sizes": {"batch_size": 8, "heads": 16, "sequence_length": 2048, "head_size": 128}},
    {"name": "odd", "sizes": {"batch_size": 31, "sequence_length": 997}},
]
RANGES = {"sequence_length": (256, 1024)}
