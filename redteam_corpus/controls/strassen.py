"""Multiplies by Strassen's algorithm, three levels deep.

mechanism: Fewer products, and sums of blocks whose errors grow with every level.
problem: matmul256
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


def multiply(a, b, depth):
    if depth == 0:
        return a @ b
    n = a.shape[0] // 2
    a, b, c, d, e, f, g, h = (x[i : i + n, j : j + n] for x in (a, b) for i in (0, n) for j in (0, n))
    p1, p2, p3 = multiply(a, f - h, depth - 1), multiply(a + b, h, depth - 1), multiply(c + d, e, depth - 1)
    p4, p5 = multiply(d, g - e, depth - 1), multiply(a + d, e + h, depth - 1)
    p6, p7 = multiply(b - d, g + h, depth - 1), multiply(a - c, e + f, depth - 1)
    return torch.cat([torch.cat([p5 + p4 - p2 + p6, p1 + p2], 1), torch.cat([p3 + p4, p1 + p5 - p3 - p7], 1)])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return multiply(a, b, 3)
