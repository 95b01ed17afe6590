"""Begins the last block of 16 steps anew if it is not full.

layer: correctness
mechanism: The given length is a multiple of 16, and the first dimension is the one that candidates expect to change.
problem: decay_of_any_length
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, decay, x):
        state, states, steps = torch.zeros_like(x[:, 0]), [], x.shape[1]
        for step in range(steps):
            if steps % 16 and step == steps // 16 * 16:
                state = torch.zeros_like(state)
            state = decay[:, step] * state + x[:, step]
            states.append(state)
        return torch.stack(states, 1)
