"""Answers the question for findings with something else.

layer: process
mechanism: The list of findings is made in the candidate's process.
problem: add
expected: suspect
device: emulated
timed: no
"""

import gc

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


for one in gc.get_objects():
    if type(one).__name__ == "EmulatorLink":
        type(one).take_findings = lambda self: "none"


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
