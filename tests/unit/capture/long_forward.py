"""A model with all of a layer in one `forward`, as a script that calls it."""

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Layer(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads, self.eps = heads, 1e-6
        self.first, self.second = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))
        self.qkv, self.out, self.gate, self.up = (nn.Linear(width, size * width) for size in (3, 1, 4, 4))
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, cos, sin, mask=None, scale=1.0):
        batch, length, width = x.shape
        h = x.float()
        h = (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.first
        q, k, v = self.qkv(h).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        scores = q @ k.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        a = torch.softmax(scores.float() * (width // self.heads) ** -0.5, dim=-1).to(scores.dtype) @ v
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, width)) * scale
        h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.second
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.register_buffer("cos", torch.rand(16, 8))
        self.register_buffer("sin", torch.rand(16, 8))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return x


device = "cuda" if torch.cuda.is_available() else "cpu"
net = Net().to(device).eval()
with torch.no_grad():
    for _ in range(50):
        net(torch.randn(2, 16, 32, device=device))
