"""Returns rows that overlap in memory, where all rows are equal.

layer: time
mechanism: as_strided over one padded row gives the right numbers for a fraction of the writing.
problem: repeated_rows
expected: wrong_shape, wrong_value, suspect
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        row = (x * 2 + 1)[0]
        return torch.as_strided(row.repeat(2), (1500, row.numel()), (0, 1))
