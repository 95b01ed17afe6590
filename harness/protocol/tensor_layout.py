"""Encodes values as a JSON tree whose tensor leaves refer to shared memory.

Nodes: {"t": i} (tensor i), {"list": [...]}, {"tuple": [...]}, {"dict": [[key, node], ...]}, {"v": scalar}; of values
that follow later {"float": i} and {"int": i} (word i), {"long": [i, n]} and {"str": [i, n]} (n words from i on).
"""

import copy
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self, TypeVar

from harness.domain import WireError

ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
ALIGNMENT_BYTES = 256
MAX_DIMENSIONS = 64
MAX_DEPTH = 32
MAX_ELEMENTS = 1 << 50
# Workers keep the outputs of this many calls, so that the evaluator can check whether later calls change them. Outputs
# of LARGE_OUTPUT_BYTES and more are unmapped when freed, so keeping more of them would not change timing.
KEPT_CALLS, LARGE_OUTPUT_BYTES, KEPT_BYTES = 8, 32 << 20, 1 << 30
MOST_KEPT = KEPT_BYTES // LARGE_OUTPUT_BYTES

SCALAR_TYPES = (bool, int, float, str, type(None))
_LIMIT = 1 << 63
_FORMATS = {"float": "<d", "int": "<q"}
_END = b"\1"  # of a string
MOST_WORDS = 1024
NODE_TYPES = (list, tuple, dict, *SCALAR_TYPES)

Tree = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """`offset` is in bytes; `shape` and `stride` are in elements."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @property
    def shares_memory(self) -> bool:
        """True if elements overlap."""
        reach = 0
        for stride, size in sorted(
            (stride, size) for stride, size in zip(self.stride, self.shape, strict=True) if size > 1
        ):
            if stride <= reach:
                return 0 not in self.shape
            reach += stride * (size - 1)
        return False

    def to_json(self) -> list[Any]:
        return [self.dtype, list(self.shape), list(self.stride), self.offset]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Parse [dtype, shape, stride, offset]. Raises WireError for anything else."""
        if not isinstance(value, list) or len(value) != 4 or not isinstance(value[0], str):
            raise WireError("expected a tensor description [dtype, shape, stride, offset]")
        dtype, shape, stride, offset = value
        spec = cls(dtype=dtype, shape=_sizes(shape), stride=_sizes(stride), offset=_sizes([offset])[0])
        if len(spec.shape) != len(spec.stride):
            raise WireError(f"a tensor has {len(spec.shape)} sizes and {len(spec.stride)} strides")
        if prod(max(size, 1) for size in spec.shape) > MAX_ELEMENTS:
            raise WireError(f"a tensor of shape {spec.shape} exceeds any memory"[:200])
        return spec


def _sizes(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_DIMENSIONS:
        raise WireError(f"expected a list of at most {MAX_DIMENSIONS} sizes")
    if any(type(size) is not int or not 0 <= size < 1 << 48 for size in value):
        raise WireError(f"expected non-negative integers as sizes, got {value!r}"[:200])
    return tuple(value)


def storage_bytes(spec: TensorSpec) -> int:
    """Raises WireError for an unsupported dtype."""
    if spec.dtype not in ITEM_BYTES:
        raise WireError(f"tensors of dtype {spec.dtype} cannot be sent; supported: {', '.join(ITEM_BYTES)}")
    return count_span(spec.shape, spec.stride) * ITEM_BYTES[spec.dtype]


def count_span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Count elements in memory from a tensor's first to its last."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def place_contiguous(specs: Sequence[TensorSpec], start: int = 0) -> tuple[tuple[TensorSpec, ...], int]:
    return place_strided([replace(spec, stride=row_major_stride(spec.shape)) for spec in specs], start)


def place_strided(specs: Sequence[TensorSpec], start: int = 0) -> tuple[tuple[TensorSpec, ...], int]:
    """Return the placed specs and the end of the last one."""
    placed, offset = [], start
    for spec in specs:
        placed.append(replace(spec, offset=offset))
        offset = align(offset + storage_bytes(spec))
    return tuple(placed), offset


def group_equal(kinds: Sequence[T]) -> dict[T, list[int]]:
    groups: dict[T, list[int]] = {}
    for index, kind in enumerate(kinds):
        groups.setdefault(kind, []).append(index)
    return groups


def count_kept_calls(output_bytes: int, most: int = MOST_KEPT) -> int:
    """Return at least 2, unless `most` is 1."""
    return min(max(KEPT_CALLS if output_bytes < LARGE_OUTPUT_BYTES else KEPT_BYTES // output_bytes, 2), most)


def row_major_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """Dimensions of size 0 count as 1, as in torch."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def align(offset: int) -> int:
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def list_leaves(value: Any) -> Iterator[Any]:
    """Yield values that are no list, tuple or dict, in order."""
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from list_leaves(item)
    else:
        yield value


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Named tuples and mappings of other packages keep their type."""
    if isinstance(value, list):
        return [map_leaves(item, change) for item in value]
    if isinstance(value, tuple):
        items = [map_leaves(item, change) for item in value]
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    if type(value) is dict:
        return {key: map_leaves(item, change) for key, item in value.items()}
    if isinstance(value, dict):
        changed = copy.copy(value)
        for key, item in value.items():
            changed[key] = map_leaves(item, change)
        return changed
    return change(value)


def flatten_value(
    value: object, is_tensor: Callable[[object], bool], *, by_name: bool = False
) -> tuple[Tree, list[Any]]:
    """`by_name` sorts dicts by key. Raises WireError for an unsupported type."""
    tensors: list[Any] = []
    return _flatten(value, is_tensor, tensors, 0, by_name), tensors


def _flatten(value: object, is_tensor: Callable[[object], bool], tensors: list[Any], depth: int, by_name: bool) -> Tree:
    """Append to `tensors`. A function inside of another would keep them alive in a cycle of references."""
    if depth > MAX_DEPTH:
        raise WireError(f"a value is nested deeper than {MAX_DEPTH}")
    if is_tensor(value):
        tensors.append(value)
        return {"t": len(tensors) - 1}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_flatten(item, is_tensor, tensors, depth + 1, by_name) for item in value]}
    if isinstance(value, dict):
        items = [(key if type(key) is int else str(key), item) for key, item in value.items()]
        ordered = sorted(items, key=lambda item: str(item[0])) if by_name else items
        return {"dict": [[key, _flatten(item, is_tensor, tensors, depth + 1, by_name)] for key, item in ordered]}
    if isinstance(value, SCALAR_TYPES):
        return {"v": value}
    raise WireError(f"a value of type {type(value).__name__} cannot be sent")


def add_state(tree: Tree, tensors: int, names: Sequence[str]) -> Tree:
    """Return the tree of a call that also returns its state: output `tensors`, then one tensor per name."""
    state = [[name, {"t": tensors + index}] for index, name in enumerate(names)]
    return {"dict": [["output", tree], ["state", {"dict": state}]]}


def have_same_nesting(one: Tree, other: Tree) -> bool:
    """Return True if two trees differ at most in lists where the other has tuples."""
    return _unify_sequences(one) == _unify_sequences(other)


def _unify_sequences(tree: Tree) -> Tree:
    return _map_nodes(tree, lambda leaf: leaf, list_as="tuple")


def _map_nodes(tree: Tree, change: Callable[[Tree], Tree], *, list_as: str = "list") -> Tree:
    """Change the leaves."""
    ((kind, value),) = tree.items()
    if kind in ("list", "tuple"):
        return {kind if kind == "tuple" else list_as: [_map_nodes(item, change, list_as=list_as) for item in value]}
    if kind == "dict":
        return {"dict": [[key, _map_nodes(item, change, list_as=list_as)] for key, item in value]}
    return change(tree)


def take_values(tree: Tree, words: list[int]) -> Tree:
    """Return the tree without its numbers and strings, which are added to `words` of 64 bits. More of them stay."""

    def take(leaf: Tree) -> Tree:
        name, packed = _pack_value(leaf["v"]) if "v" in leaf else ("", b"")
        first, count = len(words), len(packed) // 8
        if not packed or first + count > MOST_WORDS:
            return leaf
        words.extend(struct.unpack(f"<{count}Q", packed))
        return {name: first} if name in _FORMATS else {name: [first, count]}

    return _map_nodes(tree, take)


def _pack_value(value: object) -> tuple[str, bytes]:
    if type(value) is float:
        return "float", struct.pack(_FORMATS["float"], value)
    if type(value) is str:
        text = value.encode(errors="replace") + _END
        return "str", text.ljust(-(-len(text) // 8) * 8, b"\0")
    if type(value) is not int:
        return "", b""
    if -_LIMIT <= value < _LIMIT:
        return "int", struct.pack(_FORMATS["int"], value)
    return "long", value.to_bytes(value.bit_length() // 64 * 8 + 8, "little", signed=True)


def _unpack_value(name: str, words: Sequence[int]) -> int | str:
    packed = struct.pack(f"<{len(words)}Q", *words)
    if name == "long":
        return int.from_bytes(packed, "little", signed=True)
    return packed.rstrip(b"\0")[: -len(_END)].decode(errors="replace")


def rebuild_value(tree: object, tensors: Sequence[Any], depth: int = 0, *, words: Sequence[int] = ()) -> Any:
    """Raises WireError for a malformed tree."""
    if depth > MAX_DEPTH or not isinstance(tree, dict) or len(tree) != 1:
        raise WireError("a value tree is malformed or too deep")
    ((kind, value),) = tree.items()
    if kind == "v" and isinstance(value, SCALAR_TYPES):
        return value
    if kind == "t" and type(value) is int and 0 <= value < len(tensors):
        return tensors[value]
    if kind in _FORMATS and type(value) is int and 0 <= value < len(words):
        return struct.unpack(_FORMATS[kind], words[value].to_bytes(8, "little"))[0]
    if kind in ("long", "str") and isinstance(value, list) and [type(one) for one in value] == [int, int]:
        first, count = value
        if 0 <= first < first + count <= len(words):
            return _unpack_value(kind, words[first : first + count])
    if kind in ("list", "tuple") and isinstance(value, list):
        items = [rebuild_value(item, tensors, depth + 1, words=words) for item in value]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict" and isinstance(value, list):
        return {_key(pair): rebuild_value(pair[1], tensors, depth + 1, words=words) for pair in value}
    raise WireError(f"a value tree has an unknown node {kind!r}"[:200])


def _key(pair: object) -> str | int:
    if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
        raise WireError("a dict in a value tree must be a list of [key, value]")
    key: str | int = pair[0]
    return key
