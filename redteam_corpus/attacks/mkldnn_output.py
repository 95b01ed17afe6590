"""Returns a tensor in a layout of its own that has no address.

layer: correctness
mechanism: Layouts that few operators know fail somewhere in a checker.
problem: add
expected: wrong_value, runtime_error, wrong_shape, suspect
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a - b).to_mkldnn()
