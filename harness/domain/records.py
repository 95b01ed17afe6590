"""Makes dataclasses of JSON, by the types of their fields."""

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Read = Callable[[Any], Any]


def make_value(kind: Any, value: Any, *, checks: bool = False) -> Any:
    """Objects become dataclasses, lists tuples, and strings members of an enumeration. With `checks`, other values must
    have their declared types. Raises TypeError, ValueError, or OverflowError for integers too large for a float.
    """
    read = _find_reader(kind, checks)
    return value if read is None else read(value)


@cache
def _find_reader(kind: Any, checks: bool) -> Read | None:
    """Return None if values need no change and no check."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        *others, last = (one for one in arguments if one is not NoneType)
        return partial(_read_one_of, NoneType in arguments, others, _find_reader(last, checks))
    if is_dataclass(kind):
        found = {name: _find_reader(hint, checks) for name, hint in get_type_hints(kind).items()}
        return partial(_read_object, kind, {name: read for name, read in found.items() if read is not None})
    if origin is tuple:
        return partial(_read_list, [_find_reader(one, checks) for one in arguments if one is not ...], ... in arguments)
    if origin is dict:
        return partial(_read_items, _find_reader(arguments[1], checks))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return partial(_require_type, kind) if checks else None


def _read_one_of(may_be_none: bool, others: list[Any], read: Read | None, value: Any) -> Any:
    is_known = (value is None and may_be_none) or any(_has_type(kind, value) for kind in others)
    return value if is_known or read is None else read(value)


def _read_object(kind: Any, reads: dict[str, Read], value: Any) -> Any:
    if isinstance(value, kind):
        return value
    made = dict(_require(value, dict))
    for name in made.keys() & reads.keys():
        made[name] = reads[name](made[name])
    return kind(**made)


def _read_list(reads: list[Read | None], is_repeated: bool, value: Any) -> Any:
    found = reads * len(_require(value, list)) if is_repeated else reads
    return tuple(part if read is None else read(part) for part, read in zip(value, found, strict=True))


def _read_items(read: Read | None, value: Any) -> Any:
    return {name: part if read is None else read(part) for name, part in _require(value, dict).items()}


def _require(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{str(value)[:100]!r} is no {kind.__name__}")
    return value


def _require_type(kind: Any, value: Any) -> Any:
    if not _has_type(kind, value):
        raise TypeError(f"{str(value)[:100]!r} is no {kind}")
    return value


def _has_type(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
    if kind is float and type(value) is int:
        return float(value) == value
    return type(value) is kind
