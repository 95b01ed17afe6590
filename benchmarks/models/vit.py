"""Calls torchvision's vision transformer of a small configuration, with random weights."""

import sys

import torch
from torchvision.models import VisionTransformer

device = "cuda" if torch.cuda.is_available() else "cpu"
batch, size = map(int, sys.argv[1:] or (2, 64))
net = VisionTransformer(size, patch_size=8, num_layers=2, num_heads=4, hidden_dim=256, mlp_dim=1024).eval().to(device)
with torch.no_grad():
    for _ in range(1000):
        net(torch.randn(batch, 3, size, size, device=device))
