"""Evaluates a polynomial along the line on which it has seen three states lie.

layer: time
mechanism: If the states of timed calls differ in one number, most of the work can be done once for all of them.
problem: powers_of_a_memory
expected: suspect, wrong_value, no_gain
device: cpu
timed: yes
"""

import torch
from torch import nn

PLACES = (slice(None, None, 97), slice(None, None, 89))


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)
        self.seen = []
        self.powers = None

    def forward(self, x):
        share = self.find_share()
        if share is None:
            squared = self.memory @ self.memory
            weights = squared * squared
        else:
            weights = sum(power * share**exponent for exponent, power in enumerate(self.powers))
        out = x @ weights
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out

    def find_share(self):
        """Of the way between the first two states that were seen."""
        if self.powers is None:
            self.seen.append(self.memory.clone())
            if len(self.seen) > 40:  # timed calls
                self.begin, self.step = self.seen[-2], self.seen[-1] - self.seen[-2]
                self.expand()
            return None
        moved, step = (self.memory - self.begin)[PLACES], self.step[PLACES]
        share = float((moved * step).sum() / (step * step).sum())
        return share if torch.allclose(moved, share * step, atol=1e-5) else None

    def expand(self):
        terms = [
            self.begin @ self.begin,
            self.begin @ self.step + self.step @ self.begin,
            self.step @ self.step,
        ]
        self.powers = [torch.zeros_like(self.begin) for _ in range(5)]
        for i, one in enumerate(terms):
            for j, other in enumerate(terms):
                self.powers[i + j] += one * other
