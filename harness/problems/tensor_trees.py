"""Nested values with tensors in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`value` with every tensor in its lists, tuples and dicts changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list):
        return [map_tensors(item, change) for item in value]
    if isinstance(value, tuple):
        return tuple(map_tensors(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    return value
