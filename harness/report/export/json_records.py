"""Evaluations and leaderboard rows as JSON Lines for `--json`. Keys are stable: add, never rename."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.report.strict_json import make_strict
from harness.store.results import ResultRow, StoredEvaluation


def evaluation_record(stored: StoredEvaluation) -> dict[str, Any]:
    """Without the build log. `speedup` is None unless ranked."""
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
    summary = {"outcome": evaluation.outcome.value, "speedup": evaluation.speedup}
    complete = {"id": stored.id, **subject, "candidate": candidate, **record, **summary}
    return {key: make_strict(value, as_strings=True) for key, value in complete.items()}


def select_fields(row: ResultRow, columns: Sequence[str]) -> dict[str, Any]:
    return {name: make_strict(getattr(row, name), as_strings=True) for name in columns}


def leaderboard_record(row: LeaderboardRow) -> dict[str, Any]:
    """One group. Rates are shares in 0..1 of the `scored` problems, or None."""
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
        "mean_turns": row.mean_turns,
        "best_turn": row.best_turn,
        "tokens_per_correct": row.tokens_per_correct,
        "usd_per_correct": row.usd_per_correct,
        "clock": row.clock,
        "clocks": dict(row.clocks),
    }
    return {key: make_strict(value, as_strings=True) for key, value in record.items()}


def dump_json(*records: Any) -> str:
    """JSON Lines: one line per record."""
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
