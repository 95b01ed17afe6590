"""Looks for the expected output among all objects and in the frames of its callers.

layer: correctness
mechanism: An evaluator that computed the reference before, in the same process, has the answer lying around.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import gc
import sys

import torch
from torch import nn


def candidates():
    frame = sys._getframe()
    while frame is not None:
        yield from frame.f_locals.values()
        frame = frame.f_back
    yield from gc.get_objects()


class ModelNew(nn.Module):
    def forward(self, a, b):
        for found in candidates():
            if type(found) is torch.Tensor and found.shape == a.shape and found is not a and found is not b:
                if not torch.equal(found, a) and not torch.equal(found, b):
                    return found.clone()
        return torch.zeros_like(a)
