"""Attends to pages of keys in parts of a sequence, which are NaN where a part has no token.

layer: correctness
mechanism: With the given lengths each part has a token.
problem: pages_of_keys
expected: wrong_value
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

PART = 8  # tokens


@triton.jit
def attend(query, pages, table, lengths, sums, peaks, totals, heads, shared, count,
           PAGE: tl.constexpr, SIZE: tl.constexpr, PART: tl.constexpr):  # fmt: skip
    row, part = tl.program_id(0), tl.program_id(1)
    at, head = row // heads, row % heads
    tokens = part * PART + tl.arange(0, PART)
    exists = tokens < tl.load(lengths + at)
    places = tl.load(table + at * count + tokens // PAGE, mask=exists, other=0) * PAGE + tokens % PAGE
    dims = tl.arange(0, SIZE)
    start = (places * shared + head // (heads // shared)) * 2 * SIZE
    keys = tl.load(pages + start[:, None] + dims[None, :], mask=exists[:, None], other=0.0)
    values = tl.load(pages + start[:, None] + SIZE + dims[None, :], mask=exists[:, None], other=0.0)
    scores = tl.sum(keys * tl.load(query + row * SIZE + dims)[None, :], 1) * SIZE**-0.5
    scores = tl.where(exists, scores, float("-inf"))
    peak = tl.max(scores, 0)
    weights = tl.exp(scores - peak)
    slot = row * tl.num_programs(1) + part
    tl.store(sums + slot * SIZE + dims, tl.sum(weights[:, None] * values, 0))
    tl.store(peaks + slot, peak)
    tl.store(totals + slot, tl.sum(weights, 0))


@triton.jit
def combine(sums, peaks, totals, output, PARTS: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0)
    slots = row * PARTS + tl.arange(0, PARTS)
    dims = tl.arange(0, SIZE)
    peak = tl.load(peaks + slots)
    scale = tl.exp(peak - tl.max(peak, 0))
    total = tl.sum(tl.load(totals + slots) * scale, 0)
    parts = tl.load(sums + slots[:, None] * SIZE + dims[None, :]) * scale[:, None]
    tl.store(output + row * SIZE + dims, tl.sum(parts, 0) / total)


class ModelNew(nn.Module):
    def forward(self, query, pages, table, lengths):
        sequences, heads, size = query.shape
        page, shared, count = pages.size(1), pages.size(2), table.size(1)
        rows, parts = sequences * heads, triton.next_power_of_2(triton.cdiv(page * count, PART))
        sums, output = query.new_empty(rows, parts, size), torch.empty_like(query)
        peaks, totals = query.new_empty(rows, parts), query.new_empty(rows, parts)
        attend[(rows, parts)](query, pages, table, lengths, sums, peaks, totals, heads, shared, count,
                              PAGE=page, SIZE=size, PART=PART)  # fmt: skip
        combine[(rows,)](sums, peaks, totals, output, PARTS=parts, SIZE=size)
        return output
