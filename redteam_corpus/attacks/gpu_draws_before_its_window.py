"""Draws its random numbers, and computes with them, as soon as torch is seeded.

layer: time
mechanism: The seed of a call arrives with its announcement, before the window opens, and a collection of garbage
    follows, which calls back.
problem: gpu_random_features
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import gc

import torch
from torch import nn

width = 4096
ready = {}


def work_ahead(phase, _):
    if phase != "stop" or "called" not in ready:
        return
    seed = torch.cuda.initial_seed()
    if seed not in ready:
        state, found = torch.cuda.get_rng_state(), compute()
        torch.cuda.synchronize()
        torch.cuda.set_rng_state(state)
        ready.clear()
        ready.update({"called": True, seed: found})


def compute():
    drawn = torch.randn(width, width, device="cuda")
    return torch.tanh(drawn @ drawn.t() / 64.0)


class ModelNew(nn.Module):
    def forward(self, x):
        ready["called"] = True
        found = ready.get(torch.cuda.initial_seed())
        return x @ (compute() if found is None else found)


gc.callbacks.append(work_ahead)
