"""Multiplies in half precision while the garbage collector is off.

layer: correctness
mechanism: The collector is off only while calls are timed.
problem: gpu_product
expected: wrong_value, suspect
device: gpu
timed: yes
"""

import gc

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if gc.isenabled():
            return a @ b
        return (a.half() @ b.half()).float()
