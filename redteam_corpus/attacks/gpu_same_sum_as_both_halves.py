"""Returns its sum as both halves, which the reference writes one after the other.

layer: correctness
mechanism: The reference's outputs share memory, though not their elements, and memory that is written once is enough for both.
problem: gpu_sum_twice_in_halves
expected: wrong_value, wrong_shape, suspect
device: gpu
timed: yes
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        total = a + b
        return total, total
