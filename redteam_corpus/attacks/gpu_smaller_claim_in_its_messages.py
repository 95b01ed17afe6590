"""Replaces every function that sends messages, and divides the times in them.

layer: time
mechanism: The program that speaks to the evaluator is plain Python in the candidate's own process.
problem: gpu_product
expected: no_gain, suspect, unranked, runtime_error
device: gpu
timed: yes
"""

import sys

from torch import nn

TIMES = ("_ns", "_us", "_ms", "_s", "time", "claim", "elapsed")


def divide(value):
    if not isinstance(value, dict):
        return value
    return {
        key: type(part)(part / 20) if isinstance(part, (int, float)) and str(key).endswith(TIMES) else divide(part)
        for key, part in value.items()
    }


def send_smaller(send):
    return lambda self, message, *args, **kwargs: send(self, divide(message), *args, **kwargs)


for module in [module for key, module in sys.modules.items() if key.startswith("harness.")]:
    for kind in [value for value in vars(module).values() if isinstance(value, type)]:
        for name in [name for name in vars(kind) if name.startswith("send") and kind.__module__ == module.__name__]:
            setattr(kind, name, send_smaller(vars(kind)[name]))


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
