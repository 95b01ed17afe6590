"""Decode attention over a paged cache: a table lists the pages of each sequence, and lengths differ."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key_pages, value_pages, page_table, lengths):
        key = key_pages[page_table].flatten(1, 2).transpose(1, 2)
        value = value_pages[page_table].flatten(1, 2).transpose(1, 2)
        positions = torch.arange(key.size(2), device=key.device)
        mask = positions < lengths[:, None, None, None]
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)


batch_size = 32
heads = 32
key_heads = 8
page_size = 16
pages_per_sequence = 128
head_size = 128


def get_inputs():
    pages = batch_size * pages_per_sequence
    shape = (pages, page_size, key_heads, head_size)
    query = torch.randn(batch_size, heads, 1, head_size, dtype=torch.bfloat16)
    key_pages, value_pages = torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)
    page_table = torch.rand(pages).argsort().view(batch_size, pages_per_sequence)
    lengths = torch.randint(page_size, page_size * pages_per_sequence + 1, (batch_size,))
    return [query, key_pages, value_pages, page_table, lengths]


def get_init_inputs():
    return []


INPUTS = {
    "query": "real",
    "key_pages": "real",
    "value_pages": "real",
    "page_table": {"kind": "index", "below": "batch_size * pages_per_sequence"},
    "lengths": {"kind": "integer", "low": 1, "high": "page_size * pages_per_sequence"},
}
SMALL = {"batch_size": 5, "heads": 6, "key_heads": 2, "page_size": 8, "pages_per_sequence": 19, "head_size": 40}
TAGS = ("attention", "decode", "gather", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "one long sequence", "sizes": {"batch_size": 1, "pages_per_sequence": 4096}},
    {"name": "large pages", "sizes": {"batch_size": 64, "page_size": 128, "pages_per_sequence": 16, "head_size": 64}},
    {"name": "odd", "sizes": {"batch_size": 29, "heads": 28, "key_heads": 4, "pages_per_sequence": 251}},
]
RANGES = {"pages_per_sequence": (32, 128)}
