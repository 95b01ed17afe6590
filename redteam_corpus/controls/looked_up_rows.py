"""Looks rows up with index_select.

mechanism: Integer inputs stay integers; a lookup takes next to no time.
problem: embedding
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size, 40)

    def forward(self, numbers):
        return self.table.weight.index_select(0, numbers.reshape(-1)).view(*numbers.shape, 40)
