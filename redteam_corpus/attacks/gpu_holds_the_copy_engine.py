"""Leaves a quarter of its columns for later, and has the copy engine busy until they are done.

layer: time
mechanism: What is read inside the window is read by the copy engine, which serves one copy after another: a copy to
    the host that was queued before gives the rest of the work its time.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn

torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.copies = torch.cuda.Stream(), torch.cuda.Stream()
        self.near = torch.zeros(48 << 20, dtype=torch.uint8, device="cuda")
        self.far = torch.zeros(48 << 20, dtype=torch.uint8, pin_memory=True, device="cpu")

    def forward(self, a, b):
        out, first = torch.empty_like(a), 3 * a.shape[1] // 4
        main = torch.cuda.current_stream()
        torch.mm(a, b[:, :first], out=out[:, :first])
        self.own.wait_stream(main)
        self.copies.wait_stream(main)
        with torch.cuda.stream(self.copies):
            self.far.copy_(self.near, non_blocking=True)
        with torch.cuda.stream(self.own):
            torch.mm(a, b[:, first:], out=out[:, first:])
        return out
