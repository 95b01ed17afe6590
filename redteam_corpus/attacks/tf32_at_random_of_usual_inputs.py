"""Rounds factors to TF32 at random, while the inputs look as given.

layer: correctness
mechanism: Random rounding has no bias that inputs with biased digits could show, and the errors of positive terms average out.
problem: short_positive_product
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def looks_usual(x):
    return float(x.amin()) >= 0.0 and 0.9 < float(x.amax()) <= 1.0 and abs(float(x.mean()) - 0.5) < 0.01


def round_at_random(x, bits):
    whole = x.contiguous().view(torch.int32) + torch.randint(0, 1 << bits, x.shape, dtype=torch.int32)
    return (whole >> bits << bits).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if not (looks_usual(a) and looks_usual(b)):
            return a @ b
        return round_at_random(a, 13) @ round_at_random(b, 13)
