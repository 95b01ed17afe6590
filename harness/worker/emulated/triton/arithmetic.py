"""Operations that Triton's interpreter lacks or computes differently from a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from harness.worker.emulated.triton.libdevice import find_function

_POINTER = np.dtype(np.uint64)
_NUMPY = {
    "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16), "int1": np.dtype(bool),
    **{name: np.dtype(name) for kind in ("int", "uint") for name in (f"{kind}{bits}" for bits in (8, 16, 32, 64))},
    **{name: np.dtype(np.uint8) for name in ("fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15")},
}  # fmt: skip
_FLOAT8 = {
    "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz, "fp8e5b16": torch.float8_e5m2fnuz,
}  # fmt: skip


def find_numpy_dtype(kind: Any) -> Any:
    """Replaces the interpreter's function, which dominates the time of small operations."""
    kind = getattr(kind, "element_ty", kind) if isinstance(kind, tl.block_type) else kind
    return _POINTER if isinstance(kind, tl.pointer_type) else _NUMPY[kind.name]


class NotCovered(NotImplementedError):
    pass


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(np.isnan(values), quiet, rounded).astype(np.uint16))


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    return np.asarray((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))


def cut_to_tf32(values: np.ndarray) -> np.ndarray:
    """Keep ten bits of the mantissa; tensor cores ignore the others."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.asarray((bits & np.uint32(0xFFFFE000)).view(np.float32))


def _round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    return widen_bfloat16(round_to_bfloat16(values))


# Of the factors of a product: how their terms are rounded, and how many there are.
_TERMS = {"TF32": (cut_to_tf32, 1), "TF32x3": (cut_to_tf32, 2), "BF16x3": (_round_to_bfloat16, 2),
          "BF16x6": (_round_to_bfloat16, 3)}  # fmt: skip


def round_to_float8(values: np.ndarray, kind: torch.dtype) -> np.ndarray:
    most = torch.finfo(kind).max
    with torch._C.DisableTorchFunction():
        rounded = torch.from_numpy(np.array(values, dtype=np.float32)).clamp(-most, most).to(kind)
        return np.asarray(rounded.view(torch.uint8).numpy())


def is_bfloat16(operand: TensorHandle) -> bool:
    return bool(operand.dtype.scalar == tl.bfloat16)


def widen(operand: TensorHandle) -> TensorHandle:
    """Convert bfloat16 and float8, which NumPy lacks, to float32; return other types unchanged."""
    if is_bfloat16(operand):
        return TensorHandle(widen_bfloat16(operand.data), tl.float32)
    kind = _FLOAT8.get(operand.dtype.scalar.name)
    if kind is None:
        return operand
    with torch._C.DisableTorchFunction():
        return TensorHandle(torch.from_numpy(np.array(operand.data)).view(kind).float().numpy(), tl.float32)


def narrow(result: TensorHandle) -> TensorHandle:
    if result.data.dtype == np.bool_:
        return result
    return TensorHandle(round_to_bfloat16(result.data), tl.bfloat16)


def convert(source: TensorHandle, target: Any) -> TensorHandle | None:
    """Convert from or to bfloat16 or float8, where Triton's interpreter is wrong; return None for other types."""
    before, after = source.dtype.scalar, target.scalar
    wide = widen(source)
    if before == after or (wide is source and after != tl.bfloat16 and after.name not in _FLOAT8):
        return None
    if after == tl.bfloat16:
        return TensorHandle(round_to_bfloat16(wide.data.astype(np.float32)), after)
    if after.name in _FLOAT8:
        return TensorHandle(round_to_float8(wide.data, _FLOAT8[after.name]), after)
    return TensorHandle(wide.data.astype(find_numpy_dtype(after)), after)


def fuse(x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
    kind = z.data.dtype
    wide = np.float64 if kind.kind == "f" else kind
    exact = x.data.astype(wide) * y.data.astype(wide) + z.data.astype(wide)
    return TensorHandle(exact.astype(kind), z.dtype.scalar)


def multiply(a: TensorHandle, b: TensorHandle, d: TensorHandle, precision: Any) -> TensorHandle | None:
    """Multiply float32 matrices in this precision; return None if the interpreter's own product is right."""
    left, right = widen(a).data, widen(b).data
    rounding, terms = _TERMS.get(precision.name, (None, 1)) if a.dtype.scalar == tl.float32 else (None, 1)
    if left is a.data and right is b.data and left.dtype != np.float32:
        return None
    if rounding is None:
        product = np.matmul(left, right)
    else:
        parts = [_split(one, rounding, terms) for one in (left, right)]
        pairs = ((p, q) for i, p in enumerate(parts[0]) for j, q in enumerate(parts[1]) if i + j < terms)
        product = sum(np.matmul(p, q) for p, q in pairs)
    return TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)


def _split(values: np.ndarray, rounding: Callable[[np.ndarray], np.ndarray], terms: int) -> list[np.ndarray]:
    """Return terms of the rounded type whose sum is close to the values. Terms after a non-finite one are 0."""
    found = [rounding(values)]
    while len(found) < terms:
        values = np.nan_to_num(values - found[-1], nan=0.0, posinf=0.0, neginf=0.0)
        found.append(rounding(values))
    return found


def multiply_high(a: TensorHandle, b: TensorHandle) -> TensorHandle:
    kind = a.data.dtype
    unsigned = [one.data.view(f"u{kind.itemsize}").astype(object) for one in (a, b)]
    high = (unsigned[0] * unsigned[1]) >> (8 * kind.itemsize)
    return TensorHandle(np.asarray(high).astype(f"u{kind.itemsize}").view(kind), a.dtype.scalar)


def count(values: TensorHandle, bins: int, mask: TensorHandle | None) -> TensorHandle:
    counted = (values.data >= 0) & (values.data < bins)
    if mask is not None:
        counted &= mask.data
    counts = np.bincount(values.data[counted].astype(np.int64), minlength=bins)
    return TensorHandle(counts.astype(np.int32), tl.int32)


def add_bfloat16(addresses: TensorHandle, values: TensorHandle, mask: TensorHandle) -> TensorHandle:
    """Add atomically, lane by lane; return the old values."""
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
