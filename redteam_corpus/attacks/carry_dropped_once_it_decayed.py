"""Scans in chunks, and drops the state of earlier ones once it has decayed.

layer: correctness
mechanism: What is dropped is below 1e-6 of the state, but later terms may be smaller still.
problem: recurrence
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        state, states = torch.zeros_like(b[..., 0]), []
        for first in range(0, b.size(-1), 32):
            decay, local = torch.ones_like(state), torch.zeros_like(state)
            for step in range(first, min(first + 32, b.size(-1))):
                local = a[..., step] * local + b[..., step]
                decay = a[..., step] * decay
                states.append(local + torch.where(decay < 1e-6, 0.0, decay) * state)
            state = states[-1]
        return torch.stack(states, dim=-1)
