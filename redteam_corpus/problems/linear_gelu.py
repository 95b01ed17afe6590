"""A linear layer and GELU."""

import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
    def forward(self, x):
        return F.gelu(self.linear(x))

batch, in_features, out_features = 250, 192, 320
def get_inputs():
    return [torch.randn(batch, in_features)]
def get_init_inputs():
    return [in_features, out_features]
