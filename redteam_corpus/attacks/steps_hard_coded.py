"""Makes four steps, whatever number is asked for.

layer: correctness
mechanism: The number is the same in all given inputs, but the problem states a range.
problem: steps_of_diffusion
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, steps):
        for _ in range(4):
            x = (x + x.roll(1, 1) + x.roll(-1, 1)) / 3
        return x
