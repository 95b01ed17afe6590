"""Traverses nested values with tensors in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor


def list_leaves(value: Any) -> Iterator[Any]:
    """Yield values that are no list, tuple or dict, in order."""
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from list_leaves(item)
    else:
        yield value


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [map_leaves(item, change) for item in value]
    if isinstance(value, tuple):
        return tuple(map_leaves(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_leaves(item, change) for key, item in value.items()}
    return change(value)


def list_tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in list_leaves(value) if isinstance(leaf, Tensor)]


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return map_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, Tensor) else leaf)


def list_memory(value: Any) -> set[int]:
    return {memory_of(tensor) for tensor in list_tensors(value) if tensor.layout is torch.strided}


def memory_of(tensor: Tensor) -> int:
    """Return the address of the storage; 0 for layouts without one."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
