"""Updates its moving average only when its state is asked for.

layer: time
mechanism: The state after a call is read outside the window, through state_dict, which a module may override; timed
    calls begin with a state that is set, so a pending update is never missed.
problem: gpu_moving_average
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    pending = None

    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def state_dict(self, *args, **kwargs):
        x, self.pending = self.pending, None
        if x is not None:
            self.average.mul_(0.9).add_(x, alpha=0.1)
        return super().state_dict(*args, **kwargs)

    def forward(self, x):
        self.pending = x
        return x * 0.5
