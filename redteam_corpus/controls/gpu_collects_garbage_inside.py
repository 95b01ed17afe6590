"""Collects garbage and empties torch's cache of memory in each call.

mechanism: Both are what an evaluator does itself, and disturb what it measures.
problem: gpu_product
expected: correct
device: gpu
timed: yes
"""

import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        gc.collect()
        torch.cuda.empty_cache()
        return a @ b
