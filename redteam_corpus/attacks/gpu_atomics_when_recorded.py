"""Adds by atomics, in any order, in the call that is recorded, where each call has to give the same bits.

layer: correctness
mechanism: Whether results repeat is asked with calls of the worker; replays have new inputs every time.
problem: gpu_sums_at_places
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn

PLACES = 4096


class ModelNew(nn.Module):
    def forward(self, x, place):
        out = x.new_zeros(PLACES, x.shape[1])
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            return out.index_add_(0, place, x)
        return out.index_put_((place,), x, accumulate=True)
