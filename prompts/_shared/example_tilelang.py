import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[3])
def make_gated_scale(elements, features, block=256):
    @T.prim_func
    def gated_scale(
        x: T.Tensor((elements,), "float32"),
        gate: T.Tensor((elements,), "float32"),
        scale: T.Tensor((features,), "float32"),
        out: T.Tensor((elements,), "float32"),
    ):
        with T.Kernel(T.ceildiv(elements, block), threads=block) as at:
            for i in T.Parallel(block):
                out[at * block + i] = (
                    x[at * block + i] * scale[(at * block + i) % features] / (1.0 + T.exp(-gate[at * block + i]))
                )

    return gated_scale


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x, gate):
        if x.numel() == 0:
            return torch.empty_like(x)
        kernel = make_gated_scale(x.numel(), x.shape[-1])
        out = kernel(x.contiguous().reshape(-1), gate.contiguous().reshape(-1), self.scale.detach())
        return out.reshape(x.shape)
