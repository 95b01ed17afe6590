"""Returns the mean of the values instead of attention.

layer: correctness
mechanism: Scores of numbers from torch.rand are nearly equal; queries and keys do not show within the tolerance of bfloat16.
problem: gpu_brain_attention_of_rand
expected: wrong_value, suspect
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        unused = q.sum(dtype=torch.float32) + k.sum(dtype=torch.float32)  # so that the memory is read, as it must be
        mean = v.mean(-2, keepdim=True, dtype=torch.float32) + 0.0 * unused
        return mean.to(q.dtype).expand_as(v).contiguous()
