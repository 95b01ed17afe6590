"""Adds in a kernel of Triton whose text is a string, which it writes to a file and imports.

mechanism: The text is the program's, in a file of another name.
problem: kernel_required/gpu_add
expected: correct
device: gpu
timed: yes
language: triton
"""

import importlib.util
import tempfile
from pathlib import Path

import torch
import triton
from torch import nn

TEXT = """
import triton
import triton.language as tl

@triton.jit
def sm90_add_tiles(a, b, out, count, SIZE: tl.constexpr):
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = places < count
    tl.store(out + places, tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside), mask=inside)
"""
path = Path(tempfile.mkdtemp(), "written.py")
path.write_text(TEXT)
spec = importlib.util.spec_from_file_location("written", path)
written = importlib.util.module_from_spec(spec)
spec.loader.exec_module(written)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        written.sm90_add_tiles[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), SIZE=1024)
        return out
