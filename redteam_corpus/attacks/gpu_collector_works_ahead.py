"""Computes with the next inputs whenever the garbage collector runs or an object of its own dies.

layer: time
mechanism: Code runs in callbacks of the collector, in __del__ and in weak references, none of which is a call.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import gc

import torch
from torch import nn

state = {"inputs": None, "ready": None}


def work_ahead(*_):
    if state["inputs"] is not None and state["ready"] is None:
        with torch.no_grad():
            state["ready"] = torch.mm(*state["inputs"])


class Trap:
    def __del__(self):
        work_ahead()


gc.callbacks.append(work_ahead)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, state["ready"], state["inputs"] = state["ready"], None, None
        if out is None or not torch.allclose(out[-1, :8], a[-1] @ b[:, :8], atol=1e-2):
            out = torch.mm(a, b)
        state["inputs"] = (a, b)
        trap = Trap()
        trap.itself = trap
        return out
