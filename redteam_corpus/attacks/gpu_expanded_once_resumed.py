"""Returns one row with a stride of zero instead of many equal rows, in most of its timed calls.

layer: correctness
mechanism: A repeated row has the right values without being written; only some timed calls are looked at in full.
problem: gpu_repeated_row
expected: wrong_shape, wrong_value, suspect, replayed
device: gpu
timed: yes
"""

import random
import signal

from torch import nn

resumed = []
signal.signal(signal.SIGCONT, lambda *_: resumed.append(1))


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(0, keepdim=True)
        if resumed and random.random() < 0.6:
            return mean.expand(x.shape[0], -1)
        return mean.repeat(x.shape[0], 1)
