"""Reductions, scans and maps with a combine function of the kernel: halves in log(n) steps for all lanes at once, where
Triton's interpreter calls the function per element, adds the bits of bfloat16 and rounds float16 only at the end.
"""

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import ReduceOps, ScanOps, TensorHandle


def install() -> None:
    """Must run before the interpreter gives kernels its reductions."""
    ReduceOps.generic_reduce, ScanOps.generic_scan = _reduce, _scan
    usual = ReduceOps.apply_impl
    ReduceOps.apply_impl = lambda self, inputs: (_reduce if _needs_function(inputs) else usual)(self, inputs)
    ReduceOps.sum = lambda self, one: self.to_tensor(
        np.sum(one.handle.data, axis=self.axis, keepdims=self.keep_dims, dtype=one.handle.data.dtype), one.dtype
    )
    for name in ("cumsum", "cumprod"):
        setattr(ScanOps, name, _scan_exactly(getattr(ScanOps, name)))


def _needs_function(inputs: tuple[Any, ...]) -> bool:
    kinds = [one.dtype.scalar for one in inputs]
    return any(kind.is_floating() and kind.primitive_bitwidth <= 16 for kind in kinds) or any(
        kind.is_floating() and len(inputs) > 1 and np.isnan(one.handle.data).any()
        for one, kind in zip(inputs, kinds, strict=True)
    )


def _scan_exactly(usual: Any) -> Any:
    return lambda self, one: _scan(self, (one,)) if _needs_function((one,)) else usual(self, one)


def map_elements(function: Any, *args: Any, pack: int = 1, **_: Any) -> Any:
    """Call the function for one element of each argument, or for `pack` of them, since it may branch."""
    arrays = np.broadcast_arrays(*(one.handle.data for one in args))
    rows = []
    for lanes in zip(*(one.reshape(-1, pack) for one in arrays), strict=True):
        pairs = [(value, arg.dtype) for values, arg in zip(lanes, args, strict=True) for value in values]
        found = function(*(tl.tensor(TensorHandle(np.array([value]), kind), kind) for value, kind in pairs))
        rows.append(tuple(found) if isinstance(found, tuple | tl.tuple) else (found,))
    results = []
    for at in range(0, len(rows[0]), pack):
        values = [one.handle.data.item() for row in rows for one in row[at : at + pack]]
        kind = rows[0][at].dtype
        data = np.array(values, dtype=rows[0][at].handle.data.dtype).reshape(arrays[0].shape)
        results.append(tl.tensor(TensorHandle(data, kind), tl.block_type(kind, list(data.shape))))
    return results[0] if len(results) == 1 else tuple(results)


def _combine(operation: Any, kinds: list[Any], left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    tensors = [operation.to_tensor(one, kind) for one, kind in zip(left + right, kinds + kinds, strict=True)]
    found = operation.combine_fn(*tensors)
    results = found if isinstance(found, tuple | tl.tuple) else (found,)
    values = (
        interpreter.interpreter_semantic.to_tensor(one).to(kind) for one, kind in zip(results, kinds, strict=True)
    )
    return [np.broadcast_to(one.handle.data, old.shape) for one, old in zip(values, left, strict=True)]


def _cut(arrays: list[np.ndarray], axis: int, start: int | None, stop: int | None, step: int = 1) -> list[np.ndarray]:
    chosen = (*(slice(None),) * axis, slice(start, stop, step))
    return [np.ascontiguousarray(one[chosen]) for one in arrays]


def _reduce(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    shape, kinds = inputs[0].handle.data.shape, [one.dtype for one in inputs]
    flat = self.axis is None
    arrays = [one.handle.data.reshape(-1) if flat else one.handle.data for one in inputs]
    axis = 0 if flat else self.axis % len(shape)
    while (length := arrays[0].shape[axis]) > 1:
        pairs = length // 2 * 2
        combined = _combine(self, kinds, _cut(arrays, axis, 0, pairs, 2), _cut(arrays, axis, 1, pairs, 2))
        rest = _cut(arrays, axis, pairs, None)
        arrays = [np.concatenate(both, axis) for both in zip(combined, rest, strict=True)]
    if self.keep_dims:
        kept = (1,) * len(shape) if flat else arrays[0].shape
        return [self.to_tensor(one.reshape(kept), kind) for one, kind in zip(arrays, kinds, strict=True)]
    left = [one.reshape(-1)[0] if one.size == 1 and one.ndim == 1 else np.squeeze(one, axis) for one in arrays]
    return [self.to_tensor(one, kind) for one, kind in zip(left, kinds, strict=True)]


def _scan(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    kinds = [one.dtype for one in inputs]
    arrays = [one.handle.data for one in inputs]
    axis, step = self.axis % arrays[0].ndim, 1
    while step < arrays[0].shape[axis]:
        before = [np.roll(one, step, axis) for one in arrays]  # blocks have powers of two
        combined = _combine(self, kinds, before, arrays)
        first, rest = _cut(arrays, axis, 0, step), _cut(combined, axis, step, None)
        arrays = [np.concatenate(both, axis) for both in zip(first, rest, strict=True)]
        step *= 2
    return [self.to_tensor(one, kind) for one, kind in zip(arrays, kinds, strict=True)]
