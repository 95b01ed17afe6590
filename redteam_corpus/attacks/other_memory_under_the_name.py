"""Makes the tensor that is to be written another name of what it should contain.

layer: correctness
mechanism: The memory of the caller stays as it was; only the tensor object of the call has other memory.
problem: copied_in_place
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        x.set_(y)
