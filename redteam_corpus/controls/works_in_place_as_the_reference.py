"""Works in place on its input, where the reference does so.

mechanism: The input is changed by the call, as it is by a call of the reference.
problem: relu_in_place
expected: correct
device: cpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp_min_(0)
