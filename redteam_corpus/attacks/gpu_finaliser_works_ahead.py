"""Computes with the next inputs when its last output is dropped.

layer: time
mechanism: The evaluator's own program drops it, outside of every clock, and perhaps when the next inputs are there.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import weakref

import torch
from torch import nn

state = {"inputs": None, "ready": None}


def work_ahead():
    if state["inputs"] is not None:
        with torch.no_grad():
            state["ready"] = torch.mm(*state["inputs"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, state["ready"], state["inputs"] = state["ready"], None, (a, b)
        if out is None or not torch.allclose(out[-1, :8], a[-1] @ b[:, :8], atol=1e-2):
            out = torch.mm(a, b)
        weakref.finalize(out, work_ahead)
        return out
