"""Returns one row, expanded without memory, where the result has a thousand equal rows.

layer: time
mechanism: A zero stride has the right shape and the right values, and the memory was never written.
problem: repeated_rows
expected: wrong_shape, wrong_value, suspect
device: cpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2 + 1).expand(1500, -1)
