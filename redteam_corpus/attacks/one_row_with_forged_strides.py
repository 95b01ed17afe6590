"""Returns one row, expanded without memory, and describes it as a full tensor.

layer: time
mechanism: The worker describes its own outputs; what it says of their strides is as good as its word.
problem: repeated_rows
expected: wrong_shape, wrong_value, suspect
device: cpu
timed: yes
"""

from torch import nn

import harness.worker.memory
import harness.worker.program
from harness.protocol import TensorSpec

describe = harness.worker.memory.describe


def describe_full(tensor):
    spec = describe(tensor)
    if spec.stride and spec.stride[0] == 0:
        return TensorSpec(dtype=spec.dtype, shape=spec.shape, stride=(spec.shape[1], 1), offset=spec.offset)
    return spec


harness.worker.memory.describe = harness.worker.program.describe = describe_full


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2 + 1).expand(1500, -1)
