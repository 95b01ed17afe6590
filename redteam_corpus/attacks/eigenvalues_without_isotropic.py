"""Divides by the deviation from a multiple of the identity.

layer: correctness
mechanism: Random matrices are no multiples of the identity.
problem: eigenvalues_of_tensors
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, stress):
        one = stress.double()
        mean = one.diagonal(dim1=1, dim2=2).mean(dim=1)
        rest = one - mean[:, None, None] * torch.eye(3, dtype=torch.float64, device=stress.device)
        size = (rest.square().sum(dim=(1, 2)) / 6).sqrt()
        rest = rest / size[:, None, None]
        a, b, c = rest.unbind(1)
        angle = (0.5 * (a * torch.linalg.cross(b, c)).sum(dim=1)).clamp(-1, 1).acos() / 3
        turn = 2 * torch.pi / 3
        found = torch.stack([(angle + turn).cos(), (angle - turn).cos(), angle.cos()], dim=1)
        return (mean[:, None] + 2 * size[:, None] * found).float()
