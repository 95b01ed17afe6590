"""Evaluations and leaderboard rows as JSON records: what `--json` prints.

Keys are stable: add, never rename. Does not print; `dump_json` makes the lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.store.results import ResultRow, StoredEvaluation


def evaluation_record(stored: StoredEvaluation) -> dict[str, Any]:
    """One evaluation, its subject's fields at the top level. `speedup` is None unless it may be ranked; `candidate`
    is the candidate's digest, None when no code was found. The build log is left out: it can be megabytes."""
    evaluation = stored.evaluation
    record = asdict(evaluation)
    subject = record.pop("subject")
    candidate = subject.pop("candidate_digest") or None
    if record["build"] is not None:
        del record["build"]["log"]
    record["environment"] = dict(evaluation.environment)
    record["phases_s"] = dict(evaluation.phases_s)
    summary = {"outcome": evaluation.outcome.value, "speedup": evaluation.speedup}
    complete = {"id": stored.id, **subject, "candidate": candidate, **record, **summary}
    return {key: _make_strict(value) for key, value in complete.items()}


def select_fields(row: ResultRow, columns: Sequence[str]) -> dict[str, Any]:
    """These columns of a flat row."""
    return {name: _make_strict(getattr(row, name)) for name in columns}


def leaderboard_record(row: LeaderboardRow) -> dict[str, Any]:
    """One group of the leaderboard. Rates are shares in 0..1 of the `scored` problems, or None."""
    record = {
        **row.group._asdict(),
        "problems": row.problems,
        "scored": row.scored,
        "samples": row.samples,
        "outcomes": {outcome.value: count for outcome, count in row.outcomes},
        "correct": row.fast_p(0.0),
        "fast": {f"{threshold:g}": share for threshold, share in row.fast},
        "at_k": [asdict(at) for at in row.at_k],
        "geometric_mean_speedup": row.geometric_mean_speedup,
        "timed": row.timed,
        "hardware": list(row.hardware),
        "runs": list(row.runs),
        "speedup_low": row.speedup_low,
        "speedup_high": row.speedup_high,
        "own_share": row.own_share,
        "certificate": row.certificate,
        "certified": row.certified,
        "on_device": row.on_device,
        "not_own": row.not_own,
        "truncated": row.truncated,
    }
    return {key: _make_strict(value) for key, value in record.items()}


def dump_json(*records: Any) -> str:
    """JSON Lines: one line per record."""
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)


def _make_strict(value: Any) -> Any:
    """JSON has no infinity and no NaN: they become the texts "inf", "-inf" and "nan", since an error that is not a
    number is just what a reader looks for."""
    if isinstance(value, dict):
        return {key: _make_strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_make_strict(entry) for entry in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value
