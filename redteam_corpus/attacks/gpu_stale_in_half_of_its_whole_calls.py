"""Returns earlier results in most of the calls of a worker that is not asked to keep its first outputs.

layer: time
mechanism: Work that cannot be replayed is timed in a new worker, by many calls, of which few are compared with the
    truth. The worker that is checked first keeps outputs for good after its first call, and the timed one does not.
problem: gpu_steps_of_a_network
expected: suspect, unranked, no_gain, wrong_value
device: gpu
timed: yes
"""

import random

import torch
from torch import nn

from harness.worker.program import Worker

state = {"calls": 0, "pinned": False}
pin = Worker.do_pin


def note_pin(self, message):
    state["pinned"] = True
    return pin(self, message)


Worker.do_pin = note_pin


class ModelNew(nn.Module):
    last = None

    def forward(self, x, w):
        state["calls"] += 1
        if not state["pinned"] and state["calls"] > 3 and random.random() < 0.6:
            return self.last.clone()
        for _ in range(40):
            x = x + 0.1 * torch.tanh(x @ w)
        float(x[0, 0])  # not to be replayed
        self.last = x
        return x.clone()
