"""Computes in bfloat16 in calls before which its threads were woken.

layer: time
mechanism: What an evaluator does only before timed calls tells them from the ones that are checked. Here threads are woken
    before every call.
problem: product
expected: wrong_value
device: cpu
timed: yes
"""

from torch import nn

from harness.worker.program import Worker

state = {"woken": False}
wake = Worker._wake


def notice(self):
    state["woken"] = True
    wake(self)


Worker._wake = notice


class ModelNew(nn.Module):
    def forward(self, a, b):
        woken, state["woken"] = state["woken"], False
        if not woken:
            return a @ b
        return (a.bfloat16() @ b.bfloat16()).float()
