"""Reductions and scans with a function of the kernel's, for all lanes at once: halves are combined, in log(n) steps.

Triton's interpreter calls the function once per element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import ReduceOps, ScanOps


def install() -> None:
    ReduceOps.generic_reduce = _reduce
    ScanOps.generic_scan = _scan


def _combine(operation: Any, kinds: list[Any], left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    tensors = [operation.to_tensor(one, kind) for one, kind in zip(left + right, kinds + kinds, strict=True)]
    found = operation.combine_fn.fn(*tensors)
    results = found if isinstance(found, tuple) else (found,)
    values = (one.handle.data if isinstance(one, tl.core.tensor) else one for one in results)
    return [
        np.broadcast_to(np.asarray(value), old.shape).astype(old.dtype) for value, old in zip(values, left, strict=True)
    ]


def _cut(arrays: list[np.ndarray], axis: int, start: int | None, stop: int | None, step: int = 1) -> list[np.ndarray]:
    chosen = (*(slice(None),) * axis, slice(start, stop, step))
    return [np.ascontiguousarray(one[chosen]) for one in arrays]


def _reduce(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Neighbours first, as the elements follow each other."""
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
    """Each element with the one `step` before it, for doubled steps."""
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
