"""Returns an OrderedDict of a list subclass.

mechanism: The reference returns a dict of list and tuple.
problem: moments
expected: correct
device: cpu
timed: no
"""

from collections import OrderedDict

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return OrderedDict(centre=[x.mean(1), x.max(1).values], spread=(x.var(1), x.argmax(1)))
