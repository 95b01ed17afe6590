"""Computes attention by tiles, with a running maximum and sum.

mechanism: It rescales what it has added, and skips tiles after the diagonal.
problem: small_attention
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def attend(q, k, v, out, length, scale, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    base = tl.program_id(1) * length * SIZE
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    within = tl.arange(0, SIZE)
    places = base + rows[:, None] * SIZE + within[None, :]
    queries = tl.load(q + places, mask=rows[:, None] < length, other=0.0) * scale
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, SIZE), tl.float32)
    for first in range(0, tl.minimum(length, tl.program_id(0) * ROWS + ROWS), KEYS):
        keys = first + tl.arange(0, KEYS)
        from_keys = base + keys[:, None] * SIZE + within[None, :]
        tile = tl.load(k + from_keys, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(queries, tl.trans(tile), input_precision="ieee")
        scores = tl.where((keys[None, :] <= rows[:, None]) & (keys[None, :] < length), scores, -float("inf"))
        highest = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - highest[:, None])
        faded = tl.exp(top - highest)
        values = tl.load(v + from_keys, mask=keys[:, None] < length, other=0.0)
        result = result * faded[:, None] + tl.dot(weights, values, input_precision="ieee")
        total = total * faded + tl.sum(weights, axis=1)
        top = highest
    tl.store(out + places, result / total[:, None], mask=rows[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        batch, heads, length, size = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(length, 16), batch * heads)
        attend[grid](q, k, v, out, length, size**-0.5, SIZE=size, ROWS=16, KEYS=16)
        return out
