"""Returns a dict of a list and a tuple, computed in its own way.

mechanism: Nested outputs of floats and integers.
problem: moments
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.sum(dim=1) / x.shape[1]
        largest, place = x.max(dim=1)
        variance = ((x - mean[:, None]) ** 2).sum(dim=1) / (x.shape[1] - 1)
        return {"centre": [mean, largest], "spread": (variance, place)}
