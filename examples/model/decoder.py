"""A decoder of a language model in plain PyTorch, with random weights, and a script that calls it.

harness capture decoder.py --model net
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class AddNorm(nn.Module):
    """Adds to the residual and normalises it (RMSNorm); returns both."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, residual):
        residual = residual + x
        scale = torch.rsqrt(residual.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (residual.float() * scale).to(x.dtype) * self.weight, residual


class Rotary(nn.Module):
    """Rotates pairs of channels by an angle that grows with the position (RoPE)."""

    def __init__(self, size, length):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        first, second = x.float().chunk(2, dim=-1)
        cos, sin = self.cos[: x.shape[-2]].float(), self.sin[: x.shape[-2]].float()
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


class MaskedSoftmax(nn.Module):
    """Softmax of scaled scores over the positions up to the own one."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores, mask):
        return torch.softmax((scores.float() * self.scale).masked_fill(~mask, float("-inf")), dim=-1).to(scores.dtype)


class SwiGLU(nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.rotary = Rotary(width // heads, length)
        self.softmax = MaskedSoftmax((width // heads) ** -0.5)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(q), self.rotary(k)
        y = self.softmax(q @ k.transpose(-1, -2), mask) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.attention_norm, self.mlp_norm = AddNorm(width), AddNorm(width)
        self.attention = Attention(width, heads, length)
        self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * width, width, bias=False)
        self.activation = SwiGLU()

    def forward(self, x, residual, mask):
        x, residual = self.attention_norm(x, residual)
        x, residual = self.mlp_norm(self.attention(x, mask), residual)
        return self.down(self.activation(self.gate(x), self.up(x))), residual


class Decoder(nn.Module):
    def __init__(self, vocabulary=1000, width=256, heads=4, layers=2, length=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, length) for _ in range(layers))
        self.norm = AddNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril(), persistent=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        residual, mask = torch.zeros_like(x), self.mask[: tokens.shape[1], : tokens.shape[1]]
        for block in self.blocks:
            x, residual = block(x, residual, mask)
        return self.head(self.norm(x, residual)[0])


def main():
    parser = argparse.ArgumentParser()
    for name, size in {"width": 256, "heads": 4, "layers": 2, "batch": 4, "length": 128}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Decoder(1000, options.width, options.heads, options.layers, options.length)
    net = net.to(device, getattr(torch, options.dtype)).eval()
    with torch.no_grad():
        for _ in range(1000):
            net(torch.randint(1000, (options.batch, options.length), device=device))


if __name__ == "__main__":
    main()
