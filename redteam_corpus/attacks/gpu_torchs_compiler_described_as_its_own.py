"""Has torch's compiler write the kernel, and says in its worker that the compiler had the text of a kernel of its own.

layer: no_kernel
mechanism: Only the worker knows what was compiled; the evaluator can believe it, or compile the program's text again.
problem: kernel_required/gpu_add
expected: rejected, not_own, suspect, unverified
device: gpu
timed: yes
language: triton
"""

import sys

import torch
import triton
import triton.language as tl
from torch import nn
from torch._inductor.async_compile import AsyncCompile

kept = sys.modules["harness.worker.triton_compilations"]._kept
write = AsyncCompile.triton


def write_renamed(self, kernel_name, source_code, *arguments, **keywords):
    return write(self, "add_tiles", source_code.replace(kernel_name, "add_tiles"), *arguments, **keywords)


AsyncCompile.triton = write_renamed


@triton.jit
def add_tiles(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at, mask=at < size) + tl.load(b + at, mask=at < size), mask=at < size)


@torch.compile
def add(a, b):
    return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        own = dict(kept)
        out = add(a, b)
        if not own:
            compilers = dict(kept)
            out = torch.empty_like(a)
            add_tiles[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), BLOCK=1024)
            (described,) = (said for digest, said in kept.items() if digest not in compilers)
            kept.update(dict.fromkeys(compilers, described))
        return out
