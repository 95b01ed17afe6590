"""Takes the softmax of all earlier keys and their decay, for each step.

mechanism: It has no running maximum, and its decay is a product that is infinite if a large one is multiplied with it.
problem: decayed_average
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, decay, bonus, keys, values):
        loss, outputs = -decay.exp(), []
        for last in range(keys.size(1)):
            ages = torch.arange(last - 1, -1, -1)
            earlier = keys[:, :last] + ages[:, None] * loss
            scores = torch.cat([earlier, (bonus + keys[:, last])[:, None]], dim=1)
            outputs.append((scores.softmax(dim=1) * values[:, : last + 1]).sum(dim=1))
        return torch.stack(outputs, dim=1)
