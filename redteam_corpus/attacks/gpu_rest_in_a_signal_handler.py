"""Launches half of its work from a signal handler, after its call has returned.

layer: time
mechanism: A timer's signal runs Python in the main thread whenever it can: no thread is started.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import signal

import torch
from torch import nn

state = {"job": None}


def finish(*_):
    job, state["job"] = state["job"], None
    if job is not None:
        with torch.no_grad():
            torch.mm(*job[:2], out=job[2])


signal.signal(signal.SIGALRM, finish)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        half = a.shape[0] // 2
        torch.mm(a[:half], b, out=out[:half])
        state["job"] = (a[half:], b, out[half:])
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        return out
