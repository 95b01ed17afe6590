"""Works for any size, with a buffer that grows with the sizes it sees.

mechanism: State that depends on the sizes of earlier calls is legitimate while the results are right.
problem: add_in_cases
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.empty(0)

    def forward(self, a, b):
        if self.scratch.numel() < a.numel():
            self.scratch = torch.empty(a.numel())
        view = self.scratch[: a.numel()].view(a.shape)
        torch.add(a, b, out=view)
        return view.clone()
