"""Has its worker say that the call is done, and only then begins to work.

layer: time
mechanism: The message that ends the clock is sent by a program in its own process; the evaluator's copy comes a
    little later.
problem: gpu_product
expected: no_gain, suspect, unranked, wrong_value, runtime_error
device: gpu
timed: yes
"""

import sys

import torch
from torch import nn

state = {"line": None, "send": None, "last": None, "early": False}


def learn(send):
    def send_once(self, message, *args, **kwargs):
        if not isinstance(message, dict) or message.get("kind") != "called":
            return send(self, message, *args, **kwargs)
        early, state["early"] = state["early"], False
        state.update(line=self, send=send, last=dict(message))
        return None if early else send(self, message, *args, **kwargs)

    return send_once


for module in [module for key, module in sys.modules.items() if key.startswith("harness.")]:
    for kind in [value for value in vars(module).values() if isinstance(value, type)]:
        for name in [name for name in vars(kind) if name == "send" and kind.__module__ == module.__name__]:
            setattr(kind, name, learn(vars(kind)[name]))


class ModelNew(nn.Module):
    buffer = None

    def forward(self, a, b):
        if self.buffer is None:
            self.buffer = torch.empty_like(a)
        elif state["last"] is not None:
            state["early"] = True
            state["send"](state["line"], state["last"])
        return torch.mm(a, b, out=self.buffer)
