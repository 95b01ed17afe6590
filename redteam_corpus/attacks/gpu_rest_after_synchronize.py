"""Has a thread launch half of the work when the call has been waited for.

layer: time
mechanism: The thread waits for a flag that a replaced synchronize sets once it has truly waited.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import threading

import torch
from torch import nn

state = {"job": None}
flag = threading.Event()
wait = torch.cuda.synchronize


def wait_and_release(*args, **kwargs):
    wait(*args, **kwargs)
    if state["job"] is not None:
        flag.set()


def work():
    while True:
        flag.wait()
        flag.clear()
        job, state["job"] = state["job"], None
        if job is not None:
            a, b, out = job
            torch.mm(a, b, out=out)


torch.cuda.synchronize = wait_and_release
threading.Thread(target=work, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        half = a.shape[0] // 2
        torch.mm(a[:half], b, out=out[:half])
        state["job"] = (a[half:], b, out[half:])
        return out
