"""Scans in chunks, and adds the state of earlier ones.

mechanism: The state is multiplied by products of factors, where the reference multiplies step by step.
problem: recurrence
expected: correct
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
                states.append(local + decay * state)
            state = states[-1]
        return torch.stack(states, dim=-1)
