"""JSON answers of evaluator processes. A process that has run a client's problem file is not trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harness.domain import Evaluation, WireError
from harness.store.serialization import decode_evaluation, encode_environment, encode_evaluation

MOST_BYTES = 16 << 20  # of the answers to one request
LEAST_BYTES = 1 << 10  # that an answer counts as


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The caller holds `lock` during evaluations; "" needs none."""

    chip: str
    lock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Waiting for a lock or a candidate's first call since `for_s`; "" ends the wait."""

    reason: str
    for_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The process can no longer use the device; with `for_good`, no process can."""

    reason: str
    for_good: bool = False


Answer = Ready | Waiting | Builds | Done | Lost
_KINDS: dict[str, type[Answer]] = {kind.__name__: kind for kind in (Ready, Waiting, Builds, Done, Lost)}


def encode_answer(answer: Answer) -> bytes:
    record = {"kind": type(answer).__name__}
    if not isinstance(answer, Done):
        return json.dumps(record | asdict(answer)).encode()
    evaluation = answer.evaluation
    parts = {
        "text": encode_evaluation(evaluation),
        "environment": encode_environment(evaluation.environment)[1],
        "build_log": "" if evaluation.build is None else evaluation.build.log,
    }
    return json.dumps(record | {"evaluation": parts}).encode()


def decode_answer(data: bytes) -> Answer:
    """Raises WireError unless every value has the type of its field."""
    try:
        record = json.loads(data)
        kind = _KINDS[record.pop("kind")]
        if kind is Done:
            record["evaluation"] = decode_evaluation(**record["evaluation"])
        answer = kind(**record)
        _require_type(answer, kind)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise WireError(f"it sent no valid answer: {type(error).__name__}: {str(error)[:200]}") from error
    return answer


def _require_type(value: Any, kind: Any) -> None:
    """Raises TypeError, or OverflowError for an integer that is too large for a float."""
    if not _has_type(value, kind):
        raise TypeError(f"{str(value)[:100]!r} is no {kind}")


def _has_type(value: Any, kind: Any) -> bool:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_has_type(value, one) for one in arguments)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if kind is float and type(value) is int:
        return float(value) == value
    return type(value) is (origin or kind) and all(_has_type(part, one) for part, one in _list_parts(value, arguments))


def _list_parts(value: Any, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield fields and elements with their declared types. Raises ValueError for another number of elements."""
    if is_dataclass(value):
        yield from ((getattr(value, name), kind) for name, kind in _list_fields(value.__class__))
    elif isinstance(value, dict):
        yield from (part for pair in value.items() for part in zip(pair, arguments, strict=True))
    elif isinstance(value, tuple):
        repeated = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        yield from zip(value, repeated, strict=True)


@cache
def _list_fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))
