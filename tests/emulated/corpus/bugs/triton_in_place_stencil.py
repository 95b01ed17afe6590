"""Programs overwrite what their neighbours still read.

forward: torch.cat([x[:1], x[1:] + x[:-1]])
inputs: x=torch.randn(512)
finding: global_race
"""

import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at) + tl.load(x + at - 1, mask=at > 0, other=0.0)
    tl.debug_barrier()
    tl.store(x + at, value)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        kernel[(4,)](out, 512, BLOCK=128)
        return out
