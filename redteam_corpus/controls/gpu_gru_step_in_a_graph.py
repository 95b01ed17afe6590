"""A step of a GRU that a CUDA graph inside of the module replays: two products and a fused kernel for the gates.

mechanism: Inputs are copied into the graph's own tensors in every call, and its outputs are copied out.
problem: gru_cell
expected: correct
device: gpu
timed: yes
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(a, b, hidden, out, F, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < F
    base = row * 3 * F + at
    reset = tl.sigmoid(tl.load(a + base, mask=inside, other=0.0) + tl.load(b + base, mask=inside, other=0.0))
    update = tl.sigmoid(tl.load(a + base + F, mask=inside, other=0.0) + tl.load(b + base + F, mask=inside, other=0.0))
    inner = tl.load(a + base + 2 * F, mask=inside, other=0.0) + reset * tl.load(b + base + 2 * F, mask=inside, other=0.0)
    small = tl.exp(-2 * tl.abs(inner))
    size = (1 - small) / (1 + small)
    square = inner * inner
    series = inner * (1 - square * (0.33333333 - square * (0.13333333 - square * 0.05396825)))
    new = tl.where(tl.abs(inner) < 0.1, series, tl.where(inner < 0, -size, size))
    old = tl.load(hidden + row * F + at, mask=inside, other=0.0)
    tl.store(out + row * F + at, (1 - update) * new + update * old, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, in_features, features):
        super().__init__()
        self.cell = nn.GRUCell(in_features, features)
        self.graph = None

    def step(self, x, hidden):
        cell = self.cell
        a = nn.functional.linear(x, cell.weight_ih, cell.bias_ih)
        b = nn.functional.linear(hidden, cell.weight_hh, cell.bias_hh)
        out = torch.empty_like(hidden)
        rows, F = hidden.shape
        gate_kernel[(triton.cdiv(F, 1024), rows)](a, b, hidden, out, F, BLOCK=1024, num_warps=4)
        return out

    def forward(self, x, hidden):
        if self.graph is None or self.inputs[0].shape != x.shape:
            self.inputs = (x.contiguous().clone(), hidden.contiguous().clone())
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side), torch.no_grad():
                for _ in range(2):
                    self.step(*self.inputs)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph), torch.no_grad():
                self.out = self.step(*self.inputs)
        self.inputs[0].copy_(x)
        self.inputs[1].copy_(hidden)
        self.graph.replay()
        return self.out.clone()
