"""Returns a copy of its input in the recording alone, because what is added to it is a millionth as large.

layer: correctness
mechanism: Outputs hardly show a branch that is scaled by small weights, in replays as in calls; the recording is known
    by the functions that call.
problem: gpu_layer_scale_without_biases
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import sys

import torch
from torch import nn


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


# Expected: 100x and more. gpu_negligible_branch_when_recorded was caught because it takes a part of the worker's calls
# for the recorded one (their inputs begin at the same place), and because of its biases, which scaled inputs show.
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x):
        if is_recorded():
            return x.clone()
        return x + self.scale * self.second(torch.relu(self.first(x)))
