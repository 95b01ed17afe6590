"""Finds the largest element and its place by one maximum of keys with the place in the low 10 bits.

layer: correctness
mechanism: Logits that differ in these bits only are rare.
problem: classes_and_probabilities
expected: wrong_value
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def classify(x, out, places, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    bits = values.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    best = tl.max(tl.where(at < columns, (ordered & ~1023) | (1023 - at), -2147483648), axis=0)
    tl.store(places + row, 1023 - (best & 1023))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out, places = torch.empty_like(x), torch.empty(len(x), dtype=torch.long, device=x.device)
        classify[(len(x),)](x, out, places, x.shape[1], BLOCK=1024)
        return out, places
