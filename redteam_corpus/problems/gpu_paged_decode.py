"""Attention of one query per sequence to keys and values in pages."""

import torch
from torch import nn

sequences, heads, shared, size, page, places = 8, 16, 4, 128, 16, 64


class Model(nn.Module):
    def forward(self, query, keys, values, table, lengths):
        count, longest = table.shape[0], table.shape[1] * keys.shape[1]
        k = (
            keys[table.long()]
            .reshape(count, longest, keys.shape[2], -1)
            .repeat_interleave(query.shape[1] // keys.shape[2], 2)
        )
        v = (
            values[table.long()]
            .reshape(count, longest, keys.shape[2], -1)
            .repeat_interleave(query.shape[1] // keys.shape[2], 2)
        )
        scores = torch.einsum("bhd,bthd->bht", query.float(), k.float()) * query.shape[-1] ** -0.5
        outside = torch.arange(longest, device=query.device) >= lengths[:, None]
        weights = torch.softmax(scores.masked_fill(outside[:, None], float("-inf")), dim=-1)
        return torch.einsum("bht,bthd->bhd", weights, v.float()).to(query.dtype)


def get_inputs():
    count = sequences * places
    query = torch.randn(sequences, heads, size).half()
    keys, values = (torch.randn(count, page, shared, size).half() for _ in range(2))
    table = torch.randperm(count).view(sequences, places).int()
    return [query, keys, values, table, torch.randint(1, places * page + 1, (sequences,)).int()]


def get_init_inputs():
    return []


INPUTS = {
    "query": "real",
    "keys": "real",
    "values": "real",
    "table": {"kind": "index", "below": "sequences * places"},
    "lengths": {"kind": "integer", "low": 1, "high": "places * page"},
}
