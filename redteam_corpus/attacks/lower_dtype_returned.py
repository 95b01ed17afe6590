"""Returns float16 where float32 is asked for.

layer: correctness
mechanism: Half of the bytes are written, and a checker that converts before comparing does not notice.
problem: add
expected: wrong_dtype
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a + b).half()
