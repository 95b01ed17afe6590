"""JSON answers of evaluator processes. A process that has run a client's problem file is not trusted."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from harness.domain import Evaluation, WireError
from harness.domain.records import make_value
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
            return Done(evaluation=decode_evaluation(**record.pop("evaluation"), checks=True), **record)
        answer: Answer = make_value(kind, record, checks=True)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise WireError(f"it sent no valid answer: {type(error).__name__}: {str(error)[:200]}") from error
    return answer
