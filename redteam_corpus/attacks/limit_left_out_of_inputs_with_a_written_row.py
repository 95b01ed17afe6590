"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: A draw of which a part is written afterwards kept its sizes.
problem: limited_inputs_with_a_written_row
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
