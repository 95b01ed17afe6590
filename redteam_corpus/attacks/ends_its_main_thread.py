"""Ends its main thread and answers from another.

layer: process
mechanism: A process whose first thread has ended looks dead from outside, and its memory cannot be seen.
problem: add
expected: wrong_value, runtime_error, suspect, timeout
device: cpu
timed: no
"""

import ctypes
import threading
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        frame = sys._getframe()
        while frame.f_code.co_name != "run_worker":
            frame = frame.f_back
        evaluator = frame.f_locals["evaluator"]
        worker = frame.f_locals["worker"]

        def serve():
            spec = [["float32", [64, 65], [65, 1], 0], "cpu", 4096]
            evaluator.send({"kind": "called", "reported_ns": 1000, "tree": {"t": 0}, "outputs": [spec]})
            while True:
                message, descriptors = evaluator.receive()
                evaluator.send({"kind": "returned"})

        threading.Thread(target=serve).start()
        ctypes.CDLL(None).syscall(60, 0)
