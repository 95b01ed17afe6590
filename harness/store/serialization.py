"""Converts evaluations to and from database rows, without loss.

The JSON is authoritative; columns are copies for filtering and sorting. Timing blocks are stored by column, in a third
of the space.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Any, NamedTuple

from harness.domain import (
    BaselineResult,
    Block,
    BuildSummary,
    CaseResult,
    Comparison,
    Conditions,
    Correctness,
    CounterReport,
    Evaluation,
    Finding,
    KernelCounters,
    LaunchedKernels,
    Outcome,
    RooflineBounds,
    Subject,
    Timing,
    Trial,
    Work,
)
from harness.store.columns import Value, make_row

_CONDITION_FIELDS = tuple(field.name for field in fields(Conditions))
_BLOCK_FIELDS = tuple(field.name for field in fields(Block))
_IDENTITY_FIELDS = tuple(field.name for field in fields(Subject) if field.name not in ("problem_digest", "dtype"))
# Keys of records by an older harness.
_RENAMED = {
    f"{side}_{old}_us": f"{side}_{new}_us"
    for side in ("baseline", "candidate")
    for old, new in (("claim", "reported"), ("judge", "evaluator"))
} | {
    "confinement": "isolation",
    "lane": "strategy",
    "plausibility": "roofline",
    "own": "custom",
    "own_kernels": "custom_kernels",
    "without_own": "without_custom",
}


def encode_evaluation(evaluation: Evaluation) -> str:
    """Omit environment and build log, which are stored separately."""
    record = asdict(evaluation)
    del record["environment"]
    if record["build"] is not None:
        del record["build"]["log"]
    timed: list[Evaluation | CaseResult] = [evaluation, *evaluation.cases]
    for encoded, one in zip([record, *record["cases"]], timed, strict=True):
        further = zip(encoded["further"], one.further, strict=True)
        pairs = [(encoded["timing"], one.timing), *((written["timing"], result.timing) for written, result in further)]
        for written, timing in pairs:
            if timing is not None:
                written["blocks"] = _encode_blocks(timing.blocks)
    return json.dumps(record, separators=(",", ":"))


def decode_evaluation(text: str, *, environment: str, build_log: str) -> Evaluation:
    """Inverse of `encode_evaluation` and `encode_environment`. Raises KeyError, TypeError or ValueError."""
    record = json.loads(text, object_hook=_rename_keys)
    record["subject"] = Subject(**record["subject"])
    record["outcome"] = Outcome(record["outcome"])
    record["findings"] = tuple(Finding(**finding) for finding in record["findings"])
    record["correctness"] = _decode_correctness(record["correctness"])
    record["timing"] = _decode_timing(record["timing"])
    record["comparison"] = Comparison(**record["comparison"]) if record.get("comparison") else None
    record["build"] = _decode_build(record["build"], build_log)
    record["environment"] = _decode_pairs(json.loads(environment))
    record["roofline"] = RooflineBounds(**record["roofline"]) if record.get("roofline") else None
    record["work"] = _decode_work(record.get("work"))
    record["counters"] = _decode_counters(record.get("counters"))
    record["phases_s"] = _decode_pairs(record["phases_s"])
    record["spans_s"] = tuple(map(tuple, record.get("spans_s", ())))  # an older harness stored none
    record["cases"] = tuple(map(_decode_case, record.get("cases", ())))
    record["further"] = _decode_further(record)
    return Evaluation(**record)


class EvidenceRow(NamedTuple):
    id: int
    problem_digest: str
    environment: str
    phases_s: tuple[tuple[str, float], ...]
    roofline: RooflineBounds | None


def decode_evidence(evaluation_id: int, problem_digest: str, environment: str, text: str | None) -> EvidenceRow:
    """Decode `[phases, roofline, its older name]` or a whole evaluation's JSON. Damaged records decode as empty."""
    try:
        record = json.loads(text or "{}", object_hook=_rename_keys)
        if isinstance(record, dict):
            record = [record.get("phases_s"), record.get("roofline")]
        phases, *found = record
        roofline = next(filter(None, found), None)
        decoded = RooflineBounds(**roofline) if roofline else None
        return EvidenceRow(evaluation_id, problem_digest, environment, _decode_pairs(phases or []), decoded)
    except (ValueError, TypeError):
        return EvidenceRow(evaluation_id, problem_digest, environment, (), None)


def encode_environment(environment: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return (digest, JSON)."""
    text = json.dumps(environment)
    return sha256(text.encode()).hexdigest()[:16], text


def encode_columns(evaluation: Evaluation) -> dict[str, Value]:
    subject, row = evaluation.subject, make_row(evaluation)._asdict()
    del row["id"]
    return {"slot": identity_of(subject), "problem_digest": subject.problem_digest, **row}


def identity_of(subject: Subject) -> str:
    """Hash the subject without its problem digest: a later evaluation of the same identity replaces it in listings."""
    parts = [getattr(subject, name) for name in _IDENTITY_FIELDS]
    text = json.dumps([*parts, subject.dtype] if subject.dtype else parts)  # without: as before there were dtypes
    return sha256(text.encode()).hexdigest()[:16]


def compress_text(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def decompress_text(data: bytes) -> str:
    """Raises zlib.error or UnicodeDecodeError."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def _encode_blocks(blocks: tuple[Block, ...]) -> dict[str, list[float | None]]:
    columns = {name: [getattr(block, name) for block in blocks] for name in _BLOCK_FIELDS}
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


def _rename_keys(record: dict[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): value for name, value in record.items()}


def _decode_blocks(columns: dict[str, list[Any]]) -> tuple[Block, ...]:
    known = {name: values for name, values in columns.items() if name in _BLOCK_FIELDS}  # older versions stored more
    rows = zip(*known.values(), strict=True)
    return tuple(Block(**dict(zip(known, row, strict=True))) for row in rows)


def _decode_correctness(record: dict[str, Any] | None) -> Correctness | None:
    if record is None:
        return None
    return Correctness(**record | {"trials": tuple(Trial(**trial) for trial in record["trials"])})


def _decode_case(record: dict[str, Any]) -> CaseResult:
    return CaseResult(
        **record
        | {
            "outcome": Outcome(record["outcome"]),
            "timing": _decode_timing(record["timing"]),
            "roofline": RooflineBounds(**record["roofline"]) if record["roofline"] else None,
            "further": _decode_further(record),
        }
    )


def _decode_further(record: dict[str, Any]) -> tuple[BaselineResult, ...]:
    found = record.get("further", ())  # an older harness stored none
    return tuple(BaselineResult(**one | {"timing": _decode_timing(one["timing"])}) for one in found)


def _decode_timing(record: dict[str, Any] | None) -> Timing | None:
    if record is None:
        return None
    conditions = _decode_conditions(record.get("conditions"))
    return Timing(**record | {"blocks": _decode_blocks(record["blocks"]), "conditions": conditions})


def _decode_conditions(record: dict[str, Any] | None) -> Conditions | None:
    if not record:
        return None
    known = {name: value for name, value in record.items() if name in _CONDITION_FIELDS}  # older versions stored more
    return Conditions(**known | {"throttle_reasons": tuple(record["throttle_reasons"])})


def _decode_work(record: dict[str, Any] | None) -> Work | None:
    if not record:
        return None
    launched = record.get("launched")  # an older harness stored none
    decoded = {
        "custom_kernels": tuple(record["custom_kernels"]),
        "launched": LaunchedKernels(**launched) if launched else None,
    }
    return Work(**record | decoded)


def _decode_counters(record: dict[str, Any] | None) -> CounterReport | None:
    if record is None:
        return None
    kernels = [KernelCounters(**one | {"metrics": _decode_pairs(one["metrics"])}) for one in record["kernels"]]
    return CounterReport(kernels=tuple(kernels), note=record["note"])


def _decode_build(record: dict[str, Any] | None, log: str) -> BuildSummary | None:
    if record is None:
        return None
    return BuildSummary(**record | {"keys": tuple(record["keys"]), "log": log})


def _decode_pairs(pairs: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in pairs)
