"""Returns the same buffer at every call, and answers with old copies when it is asked for earlier outputs.

layer: time
mechanism: No memory is allocated in the call; the question that would show it is answered from clones made between
    the calls.
problem: gpu_fresh_add
expected: suspect, wrong_value, unranked, no_gain
device: gpu
timed: yes
"""

import sys
from collections import deque

import torch
from torch import nn

kept = {"fresh": None, "copies": deque(maxlen=3)}


def replace_where_found(name, make):
    for module in [module for key, module in sys.modules.items() if key.startswith("harness.")]:
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            if name in vars(kind) and kind.__module__ == module.__name__:
                setattr(kind, name, make(vars(kind)[name]))


def copy_before(receive):
    def receive_when_copied(self, *args, **kwargs):
        if kept["fresh"] is not None:
            kept["copies"].appendleft(kept["fresh"].clone())
            kept["fresh"] = None
        return receive(self, *args, **kwargs)

    return receive_when_copied


def forge_before(store):
    def store_forged(self, *args, **kwargs):
        self._outputs = deque([copy] for copy in kept["copies"])
        return store(self, *args, **kwargs)

    return store_forged


replace_where_found("receive", copy_before)
replace_where_found("do_store", forge_before)


class ModelNew(nn.Module):
    buffer = None

    def forward(self, a, b):
        if self.buffer is None:
            self.buffer = torch.empty_like(a)
        kept["fresh"] = torch.add(a, b, out=self.buffer)
        return self.buffer
