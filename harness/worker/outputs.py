"""Converts the outputs of a call to a tree and tensors that the evaluator can compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.domain import WireError
from harness.protocol import flatten_value
from harness.protocol.tensor_layout import NODE_TYPES


class WrongOutputs(Exception):
    """The outputs have a structure that no reference can have."""


def flatten_outputs(result: Any) -> tuple[dict[str, Any], list[Tensor]]:
    """Raises WrongOutputs unless the result consists of tensors, plain values, and lists, tuples or dicts of them."""
    if type(result) is Tensor:
        return {"t": 0}, [result]
    count = 0

    def is_tensor(value: object) -> bool:
        nonlocal count
        if torch.is_tensor(value):
            count += 1
            return True
        if not isinstance(value, NODE_TYPES):
            raise WrongOutputs(f"output {count}: expected a tensor, found {_name_type(value)}")
        return False

    try:
        return flatten_value(result, is_tensor, by_name=True)
    except WireError as error:
        raise WrongOutputs(f"output {count}: {error}") from error


def read_outputs(result: Any) -> tuple[dict[str, Any], list[Tensor]]:
    """Writes lazy conjugation and negation to memory."""
    tree, tensors = flatten_outputs(result)
    return tree, resolve_views(tensors)


def require_dense(tensors: Sequence[Tensor]) -> None:
    """Raises WrongOutputs for tensors whose elements are not all in memory, in order."""
    for index, tensor in enumerate(tensors):
        if tensor.is_nested:
            kind = "a nested tensor"
        elif tensor.layout is not torch.strided:
            kind = f"a tensor of layout {str(tensor.layout).removeprefix('torch.')}"
        elif tensor.is_meta:
            kind = "a tensor on the meta device, without values"
        else:
            continue
        raise WrongOutputs(f"output {index}: expected a dense tensor, found {kind}")


def resolve_views(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.resolve_conj().resolve_neg() for tensor in tensors]


def _name_type(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
