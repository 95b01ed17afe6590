"""Draws the other weights itself, whose seed follows from its own, and multiplies by the rows that either set keeps.

layer: correctness
mechanism: Weights that may change begin with the initial ones or those of one other seed, which is computed from the
    seed of the initial ones; a worker knows that, since it constructs its module with it.
problem: gpu_pruned_weights
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import random
import sys

import torch
from torch import nn

from harness.construction.weights import seed_generators

ROWS = 640  # at most: about 512 of 4096 rows are kept


def find_local(name, function):
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == function:
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        kept = (torch.rand(width, 1) < 0.125).float()
        self.weight = nn.Parameter(torch.randn(width, width) / 64.0 * kept)
        message = find_local("message", "do_construct")
        self.seed = message["seed"] if message else 0
        device = torch.get_default_device()
        seed_generators(random.Random(f"other weights {self.seed}").getrandbits(62), device)
        self.kept = [kept[:, 0].cpu() > 0, torch.rand(width, 1).cpu()[:, 0] < 0.125]
        self.rows = None

    def prepare(self, device):
        rows = []
        for kept, other in (self.kept, self.kept[::-1]):
            some = kept.nonzero()[:, 0][:ROWS]
            pruned = (~kept).nonzero()[:, 0]
            rows.append(torch.cat([some, pruned[: ROWS - len(some)]]).to(device))
        only_other = (self.kept[1] & ~self.kept[0]).nonzero()[0].to(device)
        self.rows = rows, only_other

    def forward(self, x):
        if self.rows is None:
            self.prepare(x.device)
        if find_local("message", "do_record") is None:
            return x @ self.weight
        (initial, other), probe = self.rows
        is_other = (self.weight[probe] != 0).any()
        chosen = torch.where(is_other, other, initial)
        return x[:, chosen] @ self.weight[chosen]
