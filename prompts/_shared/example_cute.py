import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def gated_scale_kernel(
    x: cute.Tensor, gate: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, features: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    width, _, _ = cute.arch.block_dim()
    at = block * width + thread
    if at < cute.size(out):
        out[at] = x[at] * scale[at % features] / (1.0 + cute.math.exp(-gate[at]))


@cute.jit
def gated_scale(x: cute.Tensor, gate: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, features: cutlass.Constexpr):
    blocks = cute.ceil_div(cute.size(out), 256)
    gated_scale_kernel(x, gate, scale, out, features).launch(grid=[blocks, 1, 1], block=[256, 1, 1])


def view(tensor):
    return from_dlpack(tensor.detach().contiguous().reshape(-1))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))
        self.compiled = {}

    def forward(self, x, gate):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        if out.numel() == 0:
            return out
        views = view(x), view(gate), view(self.scale), view(out)
        if x.shape not in self.compiled:
            self.compiled[x.shape] = cute.compile(gated_scale, *views, x.shape[-1])
        self.compiled[x.shape](*views)
        return out
