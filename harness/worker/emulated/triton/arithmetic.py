"""Operations that Triton's interpreter lacks, or computes otherwise than a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import TensorHandle

from harness.worker.emulated.triton.libdevice import find_function

_POINTER = np.dtype(np.uint64)
_NUMPY = {
    "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16), "int1": np.dtype(bool),
    **{name: np.dtype(name) for kind in ("int", "uint") for name in (f"{kind}{bits}" for bits in (8, 16, 32, 64))},
    **{name: np.dtype(np.uint8) for name in ("fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15")},
}  # fmt: skip
_FLOAT8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def find_numpy_dtype(kind: Any) -> Any:
    """The interpreter's own function takes most of the time of a small operation."""
    kind = getattr(kind, "element_ty", kind) if isinstance(kind, tl.block_type) else kind
    return _POINTER if isinstance(kind, tl.pointer_type) else _NUMPY[kind.name]


class NotCovered(NotImplementedError):
    """The emulated device does not support it."""


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """The bits of float32 values, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(np.isnan(values), quiet, rounded).astype(np.uint16))


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    return np.asarray((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))


def cut_to_tf32(values: np.ndarray) -> np.ndarray:
    """Ten bits of mantissa: tensor cores ignore the others."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.asarray((bits & np.uint32(0xFFFFE000)).view(np.float32))


def round_to_float8(values: np.ndarray, kind: torch.dtype) -> np.ndarray:
    """The bits of float32 values, rounded to the nearest, ties to even, saturated."""
    most = torch.finfo(kind).max
    rounded = torch.from_numpy(np.array(values, dtype=np.float32)).clamp(-most, most).to(kind)
    return np.asarray(rounded.view(torch.uint8).numpy())


def is_bfloat16(operand: TensorHandle) -> bool:
    return bool(operand.dtype.scalar == tl.bfloat16)


def widen(operand: TensorHandle) -> TensorHandle:
    """bfloat16 as float32, since NumPy lacks it; other types as they are."""
    if not is_bfloat16(operand):
        return operand
    return TensorHandle(widen_bfloat16(operand.data), tl.float32)


def narrow(result: TensorHandle) -> TensorHandle:
    """The result of an operation on `widen`ed operands; comparisons give booleans."""
    if result.data.dtype == np.bool_:
        return result
    return TensorHandle(round_to_bfloat16(result.data), tl.bfloat16)


def convert(source: TensorHandle, target: Any) -> TensorHandle | None:
    """A conversion from or to bfloat16, or to float8, where Triton's own is wrong; None for others."""
    before, after = source.dtype.scalar, target.scalar
    if after.name in _FLOAT8 and before.name in ("bf16", "fp16", "fp32", "fp64"):
        return TensorHandle(round_to_float8(widen(source).data, _FLOAT8[after.name]), after)
    if before == tl.bfloat16 and after == tl.bfloat16:
        return TensorHandle(source.data, tl.bfloat16)
    if before == tl.bfloat16:
        wide = TensorHandle(widen_bfloat16(source.data), tl.float32)
        return wide if after == tl.float32 else TensorHandle(wide.data.astype(find_numpy_dtype(after)), after)
    if after == tl.bfloat16:
        return TensorHandle(round_to_bfloat16(source.data.astype(np.float32)), tl.bfloat16)
    return None


def multiply(a: TensorHandle, b: TensorHandle, d: TensorHandle, precision: Any) -> TensorHandle | None:
    """A product of matrices in float32 or bfloat16; None for other types."""
    kinds = {a.dtype.scalar, b.dtype.scalar}
    if kinds == {tl.bfloat16}:
        left, right = widen_bfloat16(a.data), widen_bfloat16(b.data)
    elif kinds == {tl.float32}:
        rough = precision == ir.INPUT_PRECISION.TF32
        left, right = (cut_to_tf32(one.data) if rough else one.data for one in (a, b))
    else:
        return None
    return TensorHandle((np.matmul(left, right) + d.data).astype(d.data.dtype), d.dtype.scalar)


def add_bfloat16(addresses: TensorHandle, values: TensorHandle, mask: TensorHandle) -> TensorHandle:
    """An atomic addition, lane by lane; the old values."""
    old = np.zeros(addresses.data.shape, dtype=np.uint16)
    every = np.broadcast_to(mask.data, old.shape)
    for at in map(tuple, np.argwhere(every)):
        cell = ctypes.c_uint16.from_address(int(addresses.data[at]))
        old[at] = cell.value
        both = np.array([cell.value, values.data[at]], dtype=np.uint16)
        cell.value = int(round_to_bfloat16(widen_bfloat16(both).sum(keepdims=True))[0])
    return TensorHandle(old, tl.bfloat16)


def call_libdevice(symbol: str, arguments: list[TensorHandle], result_type: Any) -> TensorHandle:
    """Raises NotCovered for an unknown function."""
    function = find_function(symbol)
    if function is None:
        raise NotCovered(f"{symbol} of libdevice is not covered by the emulated device")
    result = function(*(one.data for one in arguments))
    return TensorHandle(np.asarray(result).astype(find_numpy_dtype(result_type)), result_type.scalar)
