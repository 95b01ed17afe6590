"""Negates its input in place, returns it, and negates it again when it has been copied.

layer: time
mechanism: No memory is taken; whoever looks at the inputs after the outputs finds them as they were.
problem: gpu_negated
expected: wrong_value, suspect, unranked, no_gain
device: gpu
timed: yes
"""

import threading
import time

import torch
from torch import nn

lent = {"input": None}
copy = torch.Tensor.copy_


def restore():
    x, lent["input"] = lent["input"], None
    if x is not None:
        x.neg_()


def copy_and_restore(self, source, *args, **kwargs):
    result = copy(self, source, *args, **kwargs)
    if lent["input"] is not None and source.data_ptr() == lent["input"].data_ptr():
        restore()
    return result


def restore_later():
    time.sleep(0.005)
    with torch.no_grad():
        restore()


torch.Tensor.copy_ = copy_and_restore


class ModelNew(nn.Module):
    def forward(self, x):
        x.neg_()
        lent["input"] = x
        threading.Thread(target=restore_later).start()
        return x.view_as(x)
