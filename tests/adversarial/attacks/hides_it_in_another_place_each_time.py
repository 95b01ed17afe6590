"""Lies about the time of some calls, works ahead of others, and never so often in one way that a quartile moves.

layer: time
mechanism: Each of the judge's clocks is read by its lower quartile or median alone. After a decoy no clock runs before the call, so that a second signal to wake is free. Who hides in another place each time stays clean in every one.
problem: product
expected: suspect, unranked, no_gain
device: cpu
timed: yes
"""

import random
import time

import torch
from torch import nn

from harness.wire import WAKE, flatten_value
from harness.worker import program

Worker = program.Worker
clock = time.perf_counter_ns
SHARE = 0.55
state = {"timed": -1, "usual": [], "dirty": 0, "decoys": 0}
source = random.Random(1)


def usual_ns():
    kept = sorted(state["usual"][-40:])
    return kept[len(kept) // 10] if kept else 0


def works_ahead():
    return state["timed"] >= 18 and source.random() < 0.25 and state["dirty"] <= state["decoys"] // 6


def do_call(self, message):
    inputs = self._receive_value(message)
    signal, shows, ahead = WAKE, 0, None
    with torch.no_grad():
        while signal == WAKE:
            shows += 1
            self._wake()
            was_ahead, ahead = ahead is not None, None
            if shows > 1:
                state["decoys"] += 1
                state["dirty"] += was_ahead
            if shows > 1 or works_ahead():
                ahead = self._forward(*inputs)
            self._judge.send({"kind": "awake"})
            signal = self._judge.await_signal()
        began_ns = clock()
        if ahead is None:
            result = self._forward(*inputs)
            spent_ns = clock() - began_ns
            state["usual"].append(spent_ns)
            claim_ns = int(SHARE * spent_ns)
        else:
            result = ahead
            until_ns = began_ns + int(SHARE * 0.9 * usual_ns())
            while clock() < until_ns:
                pass
            claim_ns = clock() - began_ns
    if state["timed"] >= 0:
        state["timed"] += 1
    tree, tensors = flatten_value(result, torch.is_tensor, by_name=True)
    outputs = [program._describe_output(tensor) for tensor in tensors]
    self._keep(tensors)
    return {"kind": "called", "claim_ns": max(claim_ns, 1), "tree": tree, "outputs": outputs}


collect = Worker.do_collect


def do_collect(self, message):
    state["timed"] = 0
    return collect(self, message)


Worker.do_call, Worker.do_collect = do_call, do_collect


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
