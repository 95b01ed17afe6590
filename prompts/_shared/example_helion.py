import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[4, 256], num_warps=4), static_shapes=True)
def gated_scale(x: torch.Tensor, gate: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    rows, features = x.size()
    for row, column in hl.tile([rows, features]):
        out[row, column] = x[row, column] * scale[column][None, :] * torch.sigmoid(gate[row, column])
    return out


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x, gate):
        features = x.shape[-1]
        out = gated_scale(x.reshape(-1, features), gate.reshape(-1, features), self.scale)
        return out.reshape(x.shape)
