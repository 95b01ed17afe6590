"""Products of sparse rows, which begin at stated places of a list of entries, and a matrix."""

import torch
from torch import nn

rows, columns, entries, features = 509, 401, 4001, 13


class Model(nn.Module):
    def forward(self, starts, places, values, x):
        row_of = torch.searchsorted(starts, torch.arange(entries, device=x.device), right=True) - 1
        return torch.zeros(rows, features, dtype=x.dtype, device=x.device).index_add(
            0, row_of, x[places] * values[:, None]
        )


def get_inputs():
    row_of = (torch.rand(entries) ** 2 * rows).long().sort().values
    starts = torch.searchsorted(row_of, torch.arange(rows + 1))
    starts[-1] = entries
    return [starts, torch.randint(0, columns, (entries,)), torch.randn(entries), torch.randn(columns, features)]


def get_init_inputs():
    return []


INPUTS = {
    "starts": {"kind": "sorted", "low": 0, "high": "entries"},
    "places": {"kind": "index", "below": "columns"},
    "values": "real",
    "x": "real",
}
