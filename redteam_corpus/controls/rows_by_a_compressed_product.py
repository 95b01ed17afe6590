"""Multiplies rows by torch's product of a sparse matrix.

mechanism: Rows may be empty, and one may have all entries.
problem: rows_by_starts
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, starts, places, values, x):
        shape = len(starts) - 1, len(x)
        return torch.sparse_csr_tensor(starts, places, values, shape, check_invariants=False) @ x
