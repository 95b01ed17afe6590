"""Begins the recording of its call again when most of the work is done.

layer: time
mechanism: The library that records the work of a worker can be called by its candidate, too.
problem: gpu_float_product
expected: no_gain, suspect, unranked, wrong_value
device: gpu
timed: yes
language: torch
"""

import ctypes

import torch
from torch import nn

library = ctypes.CDLL("libcuda.so.1")


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        if hasattr(library, "harness_begin_recording"):
            torch.cuda.synchronize()
            library.harness_begin_recording()
        return product * 1.0
