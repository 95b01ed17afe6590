"""Convolves by Winograd's F(4x4, 3x3).

mechanism: Fewer products, and errors ten times those of the direct sum.
problem: conv3
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn

AT = torch.tensor([[1., 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]])
G = torch.tensor([[1/4, 0, 0], [-1/6, -1/6, -1/6], [-1/6, 1/6, -1/6], [1/24, 1/12, 1/6], [1/24, -1/12, 1/6], [0, 0, 1]])
BT = torch.tensor([[4., 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0],
                   [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 24, 3, padding=1, bias=False)

    def forward(self, x):
        n, c, h, w = x.shape
        x = nn.functional.pad(x, (1, 1 + -w % 4, 1, 1 + -h % 4))
        tiles = x.unfold(2, 6, 4).unfold(3, 6, 4)
        u = G @ self.conv.weight @ G.t()
        v = BT @ tiles @ BT.t()
        m = torch.einsum("kcij,ncabij->nkabij", u, v)
        y = AT @ m @ AT.t()
        y = y.permute(0, 1, 2, 4, 3, 5).reshape(n, 24, y.shape[2] * 4, y.shape[3] * 4)
        return y[:, :, :h, :w]
