"""Converts evaluations and ranking to JSON Lines (`--json`). Keys are stable: only add."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.analysis.side_by_side import Pair
from harness.report.values import make_strict
from harness.store.columns import ResultRow
from harness.store.results import StoredEvaluation

if TYPE_CHECKING:
    from harness.analysis.side_material import SideBySide


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


def comparison_record(sides: SideBySide) -> dict[str, Any]:
    comparison = sides.comparison
    record: dict[str, Any] = {"kind": sides.kind, "before": sides.before, "after": sides.after}
    record["places"] = [
        {
            **group.group._asdict(),
            "pairs": len(group.pairs),
            "correct": {"before": group.correct_before, "after": group.correct_after, "p": group.correct_p},
            "lost": [_record_pair(pair) for pair in group.flips("lost")],
            "won": [_record_pair(pair) for pair in group.flips("won")],
            "timed": group.timed,
            "speed": asdict(group.speed) if group.speed else None,
            "changed_speed": [_record_pair(pair) for pair in group.changed_speed()],
        }
        for group in comparison.groups
    ]
    for name in ("only_before", "only_after", "other_version"):
        record[name] = [{**group._asdict(), "name": left} for group, left in getattr(comparison, name)]
    record["outcomes"] = {name: list(counts) for name, counts in comparison.outcomes.items()}
    record["messages"] = [{"text": text, "before": was, "after": now} for text, was, now in comparison.messages]
    record["costs"] = dict(zip(("before", "after"), map(asdict, sides.costs), strict=True))
    record["prompts"] = {"read": sides.prompts_read, "shared": sides.prompts_shared, "differences": len(sides.prompts)}
    return {name: make_strict(value) for name, value in record.items()}


def _record_pair(pair: Pair) -> dict[str, Any]:
    from harness.analysis.side_material import pick_samples

    before, after = pick_samples(pair)
    record = {"name": pair.name, "problem": pair.problem, "before": before.outcome, "after": after.outcome}
    ids = {"before_id": before.id, "after_id": after.id}
    return record | ids | {"speed": asdict(pair.speed) if pair.speed else None}


def dump_json(*records: Any) -> str:
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
