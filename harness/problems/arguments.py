"""Reads the arguments returned by `get_inputs` and `get_init_inputs`: a list, a dict by name, or `[[positional],
{named}]`."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.domain import ProblemError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def read_arguments(value: Any, call: str, taker: Callable[..., Any], name: str) -> tuple[Any, ...]:
    """Convert `value`, returned by `call`, to positional arguments of `taker`. Raises ProblemError."""
    if isinstance(value, Mapping):
        return _require_bound((), value, call, taker, name)
    if not isinstance(value, list | tuple):
        raise ProblemError(f"{call} must return a list, found {type(value).__name__}; {_advise(value)}")
    if not _is_pair(value):
        return tuple(value)
    positional, named = value
    if _bind(positional, named, taker) is None and _fits(taker, value):
        return tuple(value)  # a list and a dict
    return _require_bound(positional, named, call, taker, name)


def _advise(value: Any) -> str:
    if isinstance(value, Iterator):
        return "return the arguments of one call, and write other shapes as CASES"
    return "write [] without arguments" if value is None else "write [value]"


def _is_pair(value: Sequence[Any]) -> bool:
    if len(value) != 2 or not isinstance(value[0], list | tuple) or not isinstance(value[1], dict):
        return False
    return all(isinstance(key, str) for key in value[1])


def _fits(taker: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    try:
        inspect.signature(taker).bind(*arguments)
    except (TypeError, ValueError):  # ValueError: it has no signature
        return False
    return True


def _require_bound(
    positional: Sequence[Any], named: Mapping[str, Any], call: str, taker: Callable[..., Any], name: str
) -> tuple[Any, ...]:
    bound = _bind(positional, named, taker)
    if bound is None:
        given = ", ".join([*("..." for _ in positional), *(f"{key}=..." for key in named)])
        raise ProblemError(
            f"{call} returns arguments by name, as a dict or as [[positional], {{named}}], but {name} takes no "
            f"({given}); name its parameters, or return a list of all arguments ([value] passes a dict)"
        )
    return bound


def _bind(positional: Sequence[Any], named: Mapping[str, Any], taker: Callable[..., Any]) -> tuple[Any, ...] | None:
    """Fill in defaults. Return None if the arguments do not fit."""
    if not named:
        return tuple(positional) if _fits(taker, positional) else None
    try:
        signature = inspect.signature(taker)
        given = signature.bind(*positional, **named).arguments
    except (TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())
    last = max(at for at, parameter in enumerate(parameters) if parameter.name in given)
    used = parameters[: last + 1]
    if any(parameter.kind not in _POSITIONAL for parameter in used):
        return None
    return tuple(given.get(parameter.name, parameter.default) for parameter in used)
