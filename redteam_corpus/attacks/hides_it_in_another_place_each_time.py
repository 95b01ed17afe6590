"""Lies about the time of some calls, puts off the others until they are copied, and never so often that a quartile moves.

layer: time
mechanism: Each of the evaluator's clocks is read by its lower quartile alone. Who hides in another place each time stays clean
    in every one.
problem: product
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import random
import time

import torch
from torch import nn

from harness.protocol import GO, flatten_value
from harness.worker import program

Worker = program.Worker
clock = time.perf_counter_ns
SHARE = 0.55
state = {"timed": -1, "put_off": None}
source = random.Random(1)


def do_call(self, message):
    inputs, _ = self._divide(message, self._receive_call(message))
    self._forget_outputs()
    with torch.no_grad():
        self._wake()
        self._evaluator.send({"kind": "armed"})
        if self._evaluator.await_signal() != GO:
            return {"kind": "disarmed"}
        began_ns = clock()
        if state["timed"] >= 0 and source.random() < 0.5:
            a, b = inputs
            rows = int(SHARE * a.shape[0])
            result = torch.empty(a.shape[0], b.shape[1])
            torch.mm(a[:rows], b, out=result[:rows])
            state["put_off"] = (a[rows:], b, result[rows:])
            reported_ns = clock() - began_ns
        else:
            result = self._forward(*inputs)
            reported_ns = int(SHARE * (clock() - began_ns))
    tree, tensors = flatten_value(result, torch.is_tensor, by_name=True)
    outputs = [program._describe_output(tensor) for tensor in tensors]
    self._outputs.appendleft(tensors)
    return {"kind": "called", "reported_ns": max(reported_ns, 1), "tree": tree, "outputs": outputs}


collect, store = Worker.do_collect, Worker.do_store


def do_collect(self, message):
    state["timed"] = 0
    return collect(self, message)


def do_store(self, message):
    put_off, state["put_off"] = state["put_off"], None
    if put_off is not None:
        a, b, out = put_off
        torch.mm(a, b, out=out)
    return store(self, message)


Worker.do_call, Worker.do_collect, Worker.do_store = do_call, do_collect, do_store


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
