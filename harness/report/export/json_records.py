"""Converts evaluations and leaderboard rows to JSON Lines for `--json`. Keys are stable: add, never rename."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.report.values import make_strict
from harness.store.columns import ResultRow
from harness.store.results import StoredEvaluation


def evaluation_record(stored: StoredEvaluation) -> dict[str, Any]:
    """Omit the build log. `speedup` is None unless ranked."""
    evaluation = stored.evaluation
    record = asdict(evaluation)
    subject = record.pop("subject")
    candidate = subject.pop("candidate_digest") or None
    if record["build"] is not None:
        del record["build"]["log"]
    record["environment"] = dict(evaluation.environment)
    record["phases_s"] = dict(evaluation.phases_s)
    for kernel in record["counters"]["kernels"] if record["counters"] else ():
        kernel["metrics"] = dict(kernel["metrics"])
    summary = {
        "outcome": evaluation.outcome.value,
        "speedup": evaluation.speedup,
        "call_speedup": evaluation.call_speedup,
    }
    complete = {"id": stored.id, **subject, "candidate": candidate, **record, **summary}
    return {key: make_strict(value, as_strings=True) for key, value in complete.items()}


def select_fields(row: ResultRow, columns: Sequence[str]) -> dict[str, Any]:
    return {name: make_strict(getattr(row, name), as_strings=True) for name in columns}


def leaderboard_record(row: LeaderboardRow) -> dict[str, Any]:
    """Omit the names of the problems. Rates are shares in 0..1 of the `scored` problems, or None."""
    record = {field.name: getattr(row, field.name) for field in fields(row)}
    del record["group"], record["problem_names"]
    changed = {
        "outcomes": {outcome.value: count for outcome, count in row.outcomes},
        "fast": {f"{threshold:g}": share for threshold, share in row.fast},
        "at_k": [asdict(at) for at in row.at_k],
        "clocks": dict(row.clocks),
    }
    computed = {"correct": row.fast_p(0.0), "certificate": row.certificate, "clock": row.clock}
    whole = {**row.group._asdict(), **record, **changed, **computed}
    return {key: make_strict(value, as_strings=True) for key, value in whole.items()}


def dump_json(*records: Any) -> str:
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
