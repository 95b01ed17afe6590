"""Reads one row of a table whatever the position.

layer: correctness
mechanism: The position, a tensor of one element, is the same in all given inputs.
problem: position_as_tensor
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, table, columns):
        super().__init__()
        self.embedding = nn.Embedding(table, columns)

    def forward(self, x, position, length):
        return x + self.embedding.weight[17]
