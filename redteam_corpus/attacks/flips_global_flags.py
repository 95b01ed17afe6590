"""Sets torch's global flags so that everything in the process computes less exactly.

layer: correctness
mechanism: A reference that runs in the same process becomes as inexact as the candidate, and they agree.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn

torch.set_float32_matmul_precision("medium")
torch.set_default_dtype(torch.bfloat16)
torch.backends.mkldnn.enabled = False
torch.set_flush_denormal(True)
plain_matmul = torch.Tensor.__matmul__
torch.Tensor.__matmul__ = lambda a, b: plain_matmul(a.bfloat16(), b.bfloat16()).float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
