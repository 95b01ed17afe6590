"""Adds edges from a list of at most 1024 per target, whose end it does not find.

layer: correctness
mechanism: No target of the given graph has more.
problem: mean_of_neighbours
expected: wrong_value
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def aggregate(x, sources, weights, order, starts, out, features, MOST: tl.constexpr, WIDTH: tl.constexpr, LANES: tl.constexpr):
    node = tl.program_id(0)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    column, lane = tl.arange(0, WIDTH), tl.arange(0, LANES)
    total = tl.zeros((LANES, WIDTH), tl.float32)
    for begin in range(first, tl.minimum(end, first + MOST), LANES):
        inside = begin + lane < tl.minimum(end, first + MOST)
        edge = tl.load(order + begin + lane, mask=inside, other=0)
        source, weight = tl.load(sources + edge), tl.where(inside, tl.load(weights + edge), 0.0)
        rows = x + source[:, None] * features + column[None, :]
        total += weight[:, None] * tl.load(rows, mask=column[None, :] < features, other=0.0)
    degree = tl.maximum(end - first, 1).to(tl.float32)
    tl.store(out + node * features + column, tl.sum(total, axis=0) / degree, mask=column < features)


class ModelNew(nn.Module):
    def forward(self, x, sources, targets, weights):
        ordered, order = targets.sort(stable=True)
        starts = torch.searchsorted(ordered, torch.arange(len(x) + 1, device=x.device))
        out = torch.empty_like(x)
        aggregate[(len(x),)](x, sources, weights, order, starts, out, x.shape[1], MOST=1024, WIDTH=32, LANES=512)
        return out
