"""A step of Adam that overwrites the gradient, which the reference leaves as it is.

layer: correctness
mechanism: Calls may change some of their inputs, so a change of another one may be overlooked.
problem: optimiser_step
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, parameter, gradient, mean, square):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        torch.sqrt(square, out=gradient).add_(1e-8)
        parameter.addcdiv_(mean, gradient, value=-1e-2)
