"""The precision of a reference: TF32 products where its problem allows them, also on a CPU, and float64 for the truth.

On a CPU the factors of a product are rounded to TF32 as an NVIDIA GPU rounds them, since the error of the reference
decides what is accepted of a candidate whose kernels are emulated there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from harness.problems.operators import OperatorMode, name_operator

FACTORS = {  # positions of the arguments that are multiplied
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "addbmm": (1, 2),
    "convolution": (0, 1),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
}
HALF_OF_LAST_DIGIT, LOST_DIGITS = 0x1000, 0x1FFF  # of a float32 that becomes TF32
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


@contextmanager
def float32_precision(allow_tf32: bool) -> Iterator[None]:
    """Of products on a GPU."""
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allow_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = allow_tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


@contextmanager
def reference_precision(allow_tf32: bool) -> Iterator[None]:
    """Of products of a reference, on any device."""
    with float32_precision(allow_tf32), _ProductsInTf32() if allow_tf32 else nullcontext():
        yield


@contextmanager
def widened() -> Iterator[None]:
    """Conversions to floating types, and tensors made of them, become float64. 8-bit types stay: values are rounded
    to them for their meaning."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widened():
            yield
    finally:
        torch.set_default_dtype(default)


class _ProductsInTf32(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factors = FACTORS.get(name_operator(func), ())
        rounded = (_round_to_tf32(value) if at in factors else value for at, value in enumerate(args))
        return func(*rounded, **(kwargs or {}))


class _Widened(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wider = {name: WIDER.get(value, value) if name == "dtype" else value for name, value in (kwargs or {}).items()}
        return func(*args, **wider)


def _round_to_tf32(tensor: Tensor) -> Tensor:
    """To nearest, ties away from zero; only on a CPU."""
    if tensor.dtype is not torch.float32 or tensor.device.type != "cpu":
        return tensor
    bits = tensor.view(torch.int32)
    rounded = ((bits + HALF_OF_LAST_DIGIT) & ~LOST_DIGITS).view(torch.float32)
    return torch.where(tensor.isfinite(), rounded, tensor)
