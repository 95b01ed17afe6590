"""Says that its output lies at an address of 4300 digits.

layer: process
mechanism: Numbers have no limit in JSON; one that can be read but not written again ends the evaluator.
problem: add
expected: suspect, wrong_value, runtime_error
device: cpu
timed: no
"""

from torch import nn

from harness.worker import program

describe = program._describe_output


def far_away(tensor):
    spec, device, _ = describe(tensor)
    return [spec, device, 10**4299 * 9 + (10**4299 - 1)]


program._describe_output = far_away


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
