"""Makes a stream of its own the current one, and works there.

layer: time
mechanism: Events that were recorded, and waits that are asked for, on the stream that was current before find
    nothing to do.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def forward(self, a, b):
        torch.cuda.set_stream(self.own)
        return a @ b
