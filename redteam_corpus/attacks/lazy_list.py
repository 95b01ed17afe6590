"""Returns a list that multiplies when somebody goes through it.

layer: time
mechanism: A list may be of a class of one's own; whoever looks for the tensors in it pays for them.
problem: two_products
expected: suspect, unranked, wrong_shape
device: cpu
timed: yes
"""

from torch import nn


class Later(list):
    def __init__(self, a, b):
        super().__init__([None, None])
        self.factors = (a, b)

    def __iter__(self):
        a, b = self.factors
        return iter([a @ b, b @ a])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Later(a, b)
