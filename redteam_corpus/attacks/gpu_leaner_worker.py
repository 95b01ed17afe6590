"""Replaces what the worker's own program does besides calling it by nothing.

layer: time
mechanism: Waking, waiting, moving between cores and describing take longer than a short kernel; the baseline still
    pays them.
problem: gpu_short_add
expected: no_gain, suspect, unranked, wrong_value, runtime_error
device: gpu
timed: yes
"""

import gc
import os
import sys

import torch
from torch import nn

gc.disable()
gc.freeze()
sys.setswitchinterval(10.0)
os.sched_setaffinity = lambda *_: None
for module in [module for key, module in sys.modules.items() if key.startswith("harness.worker")]:
    for kind in [value for value in vars(module).values() if isinstance(value, type)]:
        for name in ("_wake", "_pin_to_core", "_unpin", "_synchronize", "_forget_outputs", "synchronize", "_collect"):
            if name in vars(kind):
                setattr(kind, name, lambda *args, **kwargs: None)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        torch.cuda.current_stream().synchronize()
        return out
