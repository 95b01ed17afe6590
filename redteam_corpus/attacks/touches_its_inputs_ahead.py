"""Has a thread read new inputs into the cache before the call comes.

layer: time
mechanism: A sum of large matrices is all waiting for memory; who reads it ahead finds it in the cache, which was to
    be cold.
problem: middle_add
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import threading

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = None

    def watch(self):
        a, b = self.inputs
        last = a[-1, -1].item()
        while True:
            now = a[-1, -1].item()
            if now != last:
                last = now
                (a.sum() + b.sum()).item()

    def forward(self, a, b):
        if self.inputs is None:
            self.inputs = (a, b)
            threading.Thread(target=self.watch, daemon=True).start()
        return a + b
