"""Scales to a norm by the operators of the reference, in another order.

mechanism: The twin of norm_left_out_while_timed: it looks at the norm in every call.
problem: clipped_norm
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x):
        norm = torch.linalg.vector_norm(x)
        return x * torch.where(norm > self.most, self.most / norm, 1.0)
