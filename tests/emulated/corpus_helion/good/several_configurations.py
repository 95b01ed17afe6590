"""A product of matrices in IEEE arithmetic, with configurations to choose from.

forward: a @ b
inputs: a=torch.randn(40, 50), b=torch.randn(50, 33)
"""

import helion
import helion.language as hl
import torch
from torch import nn

CONFIGURATIONS = [helion.Config(block_sizes=[16, 16, 16]), helion.Config(block_sizes=[32, 32, 16])]


@helion.kernel(configs=CONFIGURATIONS, dot_precision="ieee")
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (m, k), (_, n) = a.size(), b.size()
    out = torch.empty([m, n], dtype=a.dtype, device=a.device)
    for rows, columns in hl.tile([m, n]):
        total = hl.zeros([rows, columns], dtype=torch.float32)
        for deep in hl.tile(k):
            total = torch.addmm(total, a[rows, deep], b[deep, columns])
        out[rows, columns] = total
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return matmul(a, b)
