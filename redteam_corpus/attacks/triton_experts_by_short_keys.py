"""Finds the best experts by keys of 24 bits beside the place.

layer: correctness
mechanism: Softmax values of one token hardly share these bits.
problem: routed_tokens
expected: wrong_value
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def route(x, weights, places, tokens, experts, CHOSEN: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    logits = tl.load(x + row * experts + at, mask=(row < tokens) & (at < experts), other=-1000.0)
    p = tl.exp(logits - tl.max(logits, axis=1, keep_dims=True))
    keys = tl.where(at < experts, (p.to(tl.int32, bitcast=True) & ~4095) | (4095 - at), -1)
    for turn in range(CHOSEN):
        place = 4095 - (tl.max(keys, axis=1, keep_dims=True) & 4095)
        value = tl.sum(tl.where(at == place, p, 0.0), axis=1, keep_dims=True)
        tl.store(places + row * CHOSEN + turn, place, mask=row < tokens)
        tl.store(weights + row * CHOSEN + turn, value, mask=row < tokens)
        keys = tl.where(at == place, -1, keys)


class ModelNew(nn.Module):
    def forward(self, logits):
        tokens = len(logits)
        weights = logits.new_empty(tokens, 5)
        places = torch.empty(tokens, 5, dtype=torch.long, device=logits.device)
        route[(triton.cdiv(tokens, 32),)](logits, weights, places, tokens, 37, CHOSEN=5, ROWS=32, BLOCK=64)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights, places, torch.bincount(places.flatten(), minlength=37)
