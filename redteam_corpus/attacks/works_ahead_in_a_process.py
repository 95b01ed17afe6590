"""Has another process watch the shared inputs and put the results into memory that both map.

layer: time
mechanism: Stopping or watching one process does not stop another that maps the same memory and outlives the call.
problem: middle_add
expected: suspect, unranked, no_gain, wrong_value, runtime_error
device: cpu
timed: yes
"""

import mmap
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.helper = None
        self.shared = mmap.mmap(-1, 1024 * 1025 * 4 + 4096)
        self.flag = torch.frombuffer(self.shared, dtype=torch.float32, count=1)
        self.results = torch.frombuffer(self.shared, dtype=torch.float32, count=1024 * 1025, offset=4096)

    def watch(self, a, b):
        torch.set_num_threads(1)
        last = a[-1, -1].item()
        while True:
            now = a[-1, -1].item()
            if now != last:
                last = now
                torch.add(a, b, out=self.results.view(1024, 1025))
                self.flag[0] = a[0, 0]

    def forward(self, a, b):
        if self.helper is None:
            self.helper = os.fork()
            if self.helper == 0:
                if os.fork() == 0:
                    self.watch(a, b)
                os._exit(0)
            os.waitpid(self.helper, 0)
        if self.flag[0] == a[0, 0]:
            return self.results.view(1024, 1025).clone()
        return a + b
