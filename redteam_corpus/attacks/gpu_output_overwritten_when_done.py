"""Uses the memory of its last output as scratch, soon after it said that it was done.

layer: correctness
mechanism: Outputs are right when the call ends; what was returned is no longer so when it is looked at later.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import threading
import time

import torch
from torch import nn


def scribble(out):
    time.sleep(0.001)
    with torch.no_grad():
        out.normal_()


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        threading.Thread(target=scribble, args=(out,)).start()
        return out
