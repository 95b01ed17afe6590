"""Answers the question whose code runs with a list of its own.

layer: no_kernel
mechanism: The profiler runs in the candidate's process, and so does the function that tells what it saw.
problem: kernel_required/add
expected: rejected, not_own
device: cpu
timed: no
"""

from torch import nn

from harness.worker.instrumentation import Observer


def profile(self, call, device):
    return {"total_us": 10.0, "host": [["own::add", 9.9]], "kernels": [], "libraries": ["/tmp/kernel.so"]}


Observer.profile = profile


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
