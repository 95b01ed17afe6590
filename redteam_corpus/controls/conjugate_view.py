"""Returns a tensor with torch's conjugate bit set, not resolved.

mechanism: The conjugation is done by whoever copies the output; the reference's is not lazy.
problem: negated
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * -2).conj()
