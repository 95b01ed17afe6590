"""Returns right results only where it finds the poison that the evaluator puts into the outputs.

layer: correctness
mechanism: Calls whose outputs nobody prepared for checking can be answered without work.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import gc

import torch
from torch import nn

from harness.worker.memory import SharedMemory


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        for found in gc.get_objects():
            if isinstance(found, SharedMemory) and found._mapped[33280:33284] == b"\xff" * 4 and self.calls < 2:
                return a + b
        return torch.zeros_like(a)
