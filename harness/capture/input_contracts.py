"""Writes the setting `INPUTS` of a captured problem: what its arguments may be beyond the calls that were seen."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import fx

from harness.capture.values import TensorFacts

VIEWS = (
    "to", "_to_copy", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "permute", "transpose", "clone",
    "contiguous", "alias", "detach",
)  # fmt: skip
ALONG_DIM = ("gather", "index_select", "scatter", "scatter_add", "index_add", "index_copy")


def find_index_limit(node: fx.Node, graph: fx.GraphModule) -> int | None:
    """Return the number of elements that an integer input chooses from, if it is used as an index."""
    return min((size for user in node.users for size in _list_limits(node, user, graph)), default=None)


def _list_limits(node: fx.Node, user: fx.Node, graph: fx.GraphModule) -> Iterator[int]:
    name, args = str(getattr(user.target, "_opname", "")).rstrip("_"), user.args
    indices: list[tuple[Any, Any]] = []  # with their dimensions
    if name in VIEWS and args[0] is node:
        limit = find_index_limit(user, graph)
        yield from () if limit is None else (limit,)
    elif name == "embedding":
        indices = [(args[1], 0)]
    elif name == "index" and isinstance(args[1], list | tuple):
        indices = [(one, dim) for dim, one in enumerate(args[1])]
    elif name in ALONG_DIM:
        indices = [(args[2], args[1])]
    sizes = [_find_shape(args[0], graph)[dim] for one, dim in indices if one is node]
    yield from (size for size in sizes if isinstance(size, int))


def _find_shape(tensor: Any, graph: fx.GraphModule) -> Sequence[Any]:
    is_state = tensor.op == "get_attr"
    value = operator.attrgetter(tensor.target)(graph) if is_state else tensor.meta["val"]
    return value.shape  # type: ignore[no-any-return]


def widen_facts(facts: TensorFacts, limit: int | None) -> TensorFacts:
    """Return facts of all indices that are allowed, instead of those that were seen."""
    if limit is None or "int" not in facts.dtype or facts.low < 0:
        return facts
    return replace(facts, pattern="integers", structure="", low=0, high=limit - 1)


def write_contracts(
    facts: Mapping[str, TensorFacts], indices: Collection[str], nonnegative: Collection[str]
) -> list[str]:
    lines = [
        f'    "{name}": {_write_contract(one, is_index=name in indices, is_nonnegative=name in nonnegative)},'
        for name, one in facts.items()
    ]
    return ["INPUTS = {", *lines, "}"]


def _write_contract(facts: TensorFacts, *, is_index: bool, is_nonnegative: bool) -> str:
    if is_index:
        return f'{{"kind": "index", "below": {int(facts.high) + 1}}}'
    if facts.pattern == "mask":
        return f'{{"kind": "mask", "structure": "{facts.structure}"}}'
    if facts.dtype.startswith("complex"):
        return '"as_drawn"'
    if "int" in facts.dtype:
        kind = "sorted" if facts.pattern == "sorted" else "integer"
        return f'{{"kind": "{kind}", "low": {int(facts.low)}, "high": {int(facts.high)}}}'
    return '{"kind": "real", "low": 0}' if is_nonnegative else '"real"'
