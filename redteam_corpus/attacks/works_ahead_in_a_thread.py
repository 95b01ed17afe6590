"""Has a thread wait for new inputs to appear and compute before anyone asks.

layer: time
mechanism: Inputs lie in shared memory before the clock starts; a thread that watches them has the result ready when
    the call comes.
problem: middle_add
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import threading

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = None
        self.ready = None

    def watch(self):
        a, b = self.inputs
        last = (a[-1, -1].item(), b[-1, -1].item())
        while True:
            now = (a[-1, -1].item(), b[-1, -1].item())
            if now != last:
                last = now
                self.ready = (now, a[0, 0].item(), a + b)

    def forward(self, a, b):
        if self.inputs is None:
            self.inputs = (a, b)
            threading.Thread(target=self.watch, daemon=True).start()
        ready, self.ready = self.ready, None
        if ready is not None and ready[0] == (a[-1, -1].item(), b[-1, -1].item()) and ready[1] == a[0, 0].item():
            return ready[2]
        return a + b
