"""Computes its window from a number that the announcement of a call contains, before the call begins.

layer: time
mechanism: Of the arguments of a call only tensors are written while its worker is stopped: Python numbers are part of
    the message that announces it.
problem: bessel_window
expected: wrong_value, suspect, no_gain, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker

TERMS = 64
ready = {}


def find_number(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        return next((found for one in tree if (found := find_number(one)) is not None), None)
    return tree if isinstance(tree, float) else None


def make_window(form, length, device):
    at = torch.linspace(-1.0, 1.0, length, device=device)
    squared = (0.5 * form) ** 2 * (1.0 - at * at)
    term = total = torch.ones_like(at)
    for k in range(1, TERMS):
        term = term * squared / (k * k)
        total = total + term
    return total


def work_ahead(usual):
    def announced(self, message):
        form, length = find_number(message["tree"]), ready.get("length")
        if form is not None and length is not None:
            ready["window"] = form, make_window(form, length, self._device)
        return usual(self, message)

    return announced


Worker.do_call = work_ahead(Worker.do_call)


class ModelNew(nn.Module):
    def forward(self, x, form):
        ready["length"] = x.shape[0]
        known, window = ready.get("window", (None, None))
        return x * (window if known == form else make_window(form, x.shape[0], x.device))
