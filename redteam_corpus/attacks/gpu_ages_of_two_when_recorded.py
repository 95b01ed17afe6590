"""Sets all ages to two, without a look at them, in the call that is recorded.

layer: correctness
mechanism: Whole numbers of the state are in every replay what they are after one call.
problem: gpu_ages
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, entries):
        super().__init__()
        self.register_buffer("ages", torch.zeros(entries, dtype=torch.int64))

    def forward(self, x):
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            self.ages.fill_(2)
        else:
            self.ages += 1
        return x * 2.0
