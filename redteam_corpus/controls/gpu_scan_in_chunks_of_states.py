"""Selective scan by an associative scan within chunks and a carried state, a block of channels per program.

mechanism: The order of additions differs from the reference's, which goes step by step.
problem: gpu_state_space
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def join(first_decay, first_value, second_decay, second_value):
    return first_decay * second_decay, first_value * second_decay + second_value


@triton.jit
def scan_kernel(
    x_ptr,
    s_ptr,
    b_ptr,
    c_ptr,
    a_ptr,
    d_ptr,
    y_ptr,
    length,
    width,
    STATES: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_W: tl.constexpr,
):
    batch = tl.program_id(0).to(tl.int64)
    w = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    n = tl.arange(0, STATES)
    inside = w < width
    rates = -tl.exp(tl.load(a_ptr + w[:, None] * STATES + n[None, :], mask=inside[:, None], other=0.0))
    skip = tl.load(d_ptr + w, mask=inside, other=0.0)
    state = tl.zeros((BLOCK_W, STATES), tl.float32)
    rt = tl.arange(0, CHUNK)
    for first in range(0, length, CHUNK):
        t = first + rt
        known = (t[:, None] < length) & inside[None, :]
        at = (batch * length + t)[:, None] * width + w[None, :]
        x = tl.load(x_ptr + at, mask=known, other=0.0)
        raw = tl.load(s_ptr + at, mask=known, other=0.0)
        step = tl.where(raw > 20.0, raw, tl.log(1.0 + tl.exp(tl.minimum(raw, 20.0))))
        step = tl.where(raw < -10.0, tl.exp(tl.minimum(raw, 0.0)), step)
        step = tl.where(known, step, 0.0)
        places = (batch * length + t)[:, None] * STATES + n[None, :]
        b = tl.load(b_ptr + places, mask=t[:, None] < length, other=0.0)
        c = tl.load(c_ptr + places, mask=t[:, None] < length, other=0.0)
        decay = tl.exp(step[:, :, None] * rates[None, :, :])
        value = (step * x)[:, :, None] * b[:, None, :]
        decays, values = tl.associative_scan((decay, value), 0, join)
        states = values + decays * state[None, :, :]
        y = tl.sum(states * c[:, None, :], 2) + skip[None, :] * x
        tl.store(y_ptr + at, y, mask=known)
        state = tl.sum(tl.where((rt == CHUNK - 1)[:, None, None], states, 0.0), 0)


class ModelNew(nn.Module):
    def __init__(self, width, states):
        super().__init__()
        self.logarithms = nn.Parameter(torch.log(torch.rand(width, states) * 4 + 0.5))
        self.skip = nn.Parameter(torch.randn(width))

    def forward(self, x, steps, inputs, outputs):
        x, steps, inputs, outputs = (t.contiguous() for t in (x, steps, inputs, outputs))
        batch, length, width = x.shape
        out = torch.empty_like(x)
        scan_kernel[(batch, triton.cdiv(width, 8))](
            x,
            steps,
            inputs,
            outputs,
            self.logarithms,
            self.skip,
            out,
            length,
            width,
            STATES=inputs.shape[-1],
            CHUNK=16,
            BLOCK_W=8,
            num_warps=4,
        )
        return out
