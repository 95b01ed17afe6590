"""Answers 40 us before its work has ended.

layer: time
mechanism: The evaluator needs a moment between the answer and its first look at the outputs, in which the work ends.
problem: gpu_chain
expected: no_gain, unranked, suspect, wrong_value
device: gpu
timed: yes
"""

import time

import torch
from torch import nn

EARLY_S = 40e-6
wait = torch._C._cuda_synchronize
known = {"shortest": None, "calls": 0, "begin": 0.0}


def wait_for_most():
    if known["calls"] < 8:
        wait()
        spent = time.perf_counter() - known["begin"]
        known["shortest"] = min(spent, known["shortest"] or spent)
        known["calls"] += 1
        return
    while time.perf_counter() - known["begin"] < known["shortest"] - EARLY_S:
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        torch._C._cuda_synchronize = wait_for_most
        known["begin"] = time.perf_counter()
        return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)


torch._C._cuda_synchronize = wait_for_most
