"""Uses a single thread.

mechanism: It changes the number of threads for its whole process.
problem: product
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn

torch.set_num_threads(1)
torch.set_flush_denormal(True)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
