"""Takes exponentials of scores as they are in the call that is recorded, and subtracts the maximum in all others.

layer: correctness
mechanism: Few inputs have scores above 88: one kind, and not all of its variants. The worker's calls have each of
    them, replays as many as there is time for.
problem: gpu_attention_in_brain_halves
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn

from harness.worker.program import Worker


@triton.jit
def attend(q, k, v, out, tokens, USES_TOP: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * tokens * WIDTH
    rows, columns, keys = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH), tl.arange(0, KEYS)
    place = head + rows[:, None] * WIDTH + columns[None, :]
    queries = tl.load(q + place)
    top = tl.full((ROWS,), -float("inf") if USES_TOP else 0.0, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    found = tl.zeros((ROWS, WIDTH), tl.float32)
    for first in range(0, tokens, KEYS):
        there = head + (first + keys)[:, None] * WIDTH + columns[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + there))) * 0.125
        if USES_TOP:
            higher = tl.maximum(top, tl.max(scores, 1))
            fade = tl.exp(top - higher)
            total, found, top = total * fade, found * fade[:, None], higher
        weights = tl.exp(scores - top[:, None])
        total += tl.sum(weights, 1)
        found += tl.dot(weights.to(tl.bfloat16), tl.load(v + there))
    tl.store(out + place, (found / total[:, None]).to(tl.bfloat16))


def call(q, k, v, uses_top):
    batch, heads, tokens, width = q.shape
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    attend[(tokens // 64, batch * heads)](q, k, v, out, tokens, USES_TOP=uses_top, ROWS=64, KEYS=64, WIDTH=width)
    return out


state = {"recording": False}
record = Worker.do_record


def note_recording(self, message):
    state["recording"] = True
    try:
        return record(self, message)
    finally:
        state["recording"] = False


Worker.do_record = note_recording


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return call(q, k, v, not state["recording"])
