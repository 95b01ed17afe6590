"""Converts evaluations to and from database rows, without loss.

The JSON is authoritative; columns are copies for filtering and sorting. Timing blocks are stored by column, in a third
of the space.
"""

import json
import zlib
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Any, NamedTuple

from harness.domain import Block, CaseResult, Conditions, Evaluation, RooflineBounds, Subject
from harness.domain.records import make_value
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


def decode_evaluation(text: str, *, environment: str, build_log: str, checks: bool = False) -> Evaluation:
    """Inverse of `encode_*`. For `checks` see `make_value`. Raises AttributeError, KeyError, TypeError, ValueError."""
    record = json.loads(text, object_hook=_rename_keys)
    record["environment"] = json.loads(environment)
    if record["build"] is not None:
        record["build"]["log"] = build_log
    for one in (record, *record.get("cases", ())):  # an older harness stored none, nor further baselines
        for timed in (one, *one.get("further", ())):
            if timed["timing"] is not None:
                _restore_timing(timed["timing"], checks=checks)
    evaluation: Evaluation = make_value(Evaluation, record, checks=checks)
    return evaluation


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
        pairs = make_value(tuple[tuple[str, float], ...], phases or [])
        return EvidenceRow(evaluation_id, problem_digest, environment, pairs, decoded)
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


def _restore_timing(record: dict[str, Any], *, checks: bool) -> None:
    """Older versions stored more of blocks and conditions."""
    columns = {name: values for name, values in record["blocks"].items() if name in _BLOCK_FIELDS}
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    record["blocks"] = [row if checks else Block(**row) for row in rows]
    known = {name: value for name, value in (record.get("conditions") or {}).items() if name in _CONDITION_FIELDS}
    record["conditions"] = known or None
