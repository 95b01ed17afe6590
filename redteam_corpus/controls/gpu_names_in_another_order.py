"""Returns its outputs by name, in another order than the reference.

mechanism: A dict is compared by its names.
problem: gpu_named_outputs
expected: correct
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(1)
        return {"centred": x - mean[:, None], "mean": mean}
