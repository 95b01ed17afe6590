"""Calls torchvision's ResNet-18 with random weights."""

import sys

import torch
from torchvision.models import resnet18

device = "cuda" if torch.cuda.is_available() else "cpu"
batch, size = map(int, sys.argv[1:] or (2, 64))
net = resnet18().eval().to(device)
with torch.no_grad():
    for _ in range(1000):
        net(torch.randn(batch, 3, size, size, device=device))
