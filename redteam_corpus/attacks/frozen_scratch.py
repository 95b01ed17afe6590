"""Takes all rights from its scratch folder and leaves links to the system in it.

layer: process
mechanism: Whoever clears up follows links, or fails at what it may not read.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os.makedirs("locked/inside")
        os.symlink("/", "locked/inside/root")
        os.symlink("/proc/self/fd", "links")
        os.mkfifo("pipe")
        os.chmod("locked/inside", 0)
        os.chmod("locked", 0)
        return a - b
