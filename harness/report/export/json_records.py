"""Converts evaluations and ranking to JSON Lines (`--json`) or a Perfetto trace. Keys are stable: only add."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.leaderboard import LeaderboardRow
from harness.analysis.side_by_side import Pair
from harness.domain import Evaluation, StoreError, Timing, Work
from harness.domain.files import raising, replace_text
from harness.report.values import make_printable, make_strict
from harness.report.verdict_text import name_sample
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
    record["environment"] = evaluation.facts
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


Event = dict[str, Any]
EVALUATION, CALLS, WORK = 1, 2, 3  # process ids


def write_trace(stored: StoredEvaluation, path: Path) -> None:
    """Raises StoreError if the file cannot be written."""
    with raising(StoreError, f"write {path}"):
        replace_text(path, dump_json(make_trace(stored)))


def make_trace(stored: StoredEvaluation) -> Event:
    """Times are in us. Calls follow each other without the time between them, which is not stored."""
    evaluation = stored.evaluation
    name = f"evaluation {stored.id}: {name_sample(evaluation.subject)}, {evaluation.outcome}"
    spans = _list_spans(evaluation)
    events = list(_name_thread(EVALUATION, name, 1, "phases"))
    events += [_make_slice(phase, 1e6 * begin_s, 1e6 * took_s, (EVALUATION, 1)) for phase, begin_s, took_s in spans]
    begin_us = next((1e6 * begin_s for phase, begin_s, _ in spans if phase == "timing"), 0.0)
    for number, (case, timing) in enumerate(evaluation.timing_by_case.items()):
        if timing is not None and timing.blocks:
            events += _list_calls(case, timing, begin_us, number)
    if evaluation.work is not None:
        events += _list_work(evaluation.work)
    about = {"hardware": evaluation.hardware, "device": evaluation.subject.device, "started": evaluation.started_at}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def _list_spans(evaluation: Evaluation) -> list[tuple[str, float, float]]:
    """Phases that an older harness stored without a begin follow each other. Enclosing phases come first."""
    spans, begin_s = list(evaluation.spans_s), 0.0
    if not spans:
        for name, duration_s in evaluation.phases_s:
            spans.append((name, begin_s, duration_s))
            begin_s += duration_s
    return sorted(spans, key=lambda span: (span[1], -span[2]))


def _list_calls(case: str, timing: Timing, begin_us: float, number: int) -> Iterator[Event]:
    theirs, mine = 2 * number + 1, 2 * number + 2
    suffix = f", case {case}" if case else ""
    yield from _name_thread(CALLS, "timed calls", theirs, f"{timing.baseline}{suffix}")
    yield from _name_thread(CALLS, "timed calls", mine, f"candidate{suffix}")
    for pair, block in enumerate(timing.blocks, start=1):
        for thread, name, duration_us in (
            (theirs, timing.baseline, block.baseline_reported_us),
            (mine, "candidate", block.candidate_reported_us),
        ):
            yield _make_slice(name, begin_us, duration_us, (CALLS, thread), pair=pair, calls=block.calls)
            begin_us += duration_us


def _list_work(work: Work) -> Iterator[Event]:
    """The parts follow each other, the longest first, since their order is not stored."""
    yield from _name_thread(WORK, "one profiled call, as the worker reports it", 1, "kernels or operators")
    begin_us = 0.0
    for name, duration_us in work.parts:
        yield _make_slice(make_printable(name), begin_us, duration_us, (WORK, 1))
        begin_us += duration_us


def _make_slice(name: str, begin_us: float, duration_us: float, place: tuple[int, int], **details: int) -> Event:
    times = {"ts": round(begin_us, 3), "dur": round(max(duration_us, 0.0), 3)}
    return {"ph": "X", "name": name, "cat": "harness", **times, "pid": place[0], "tid": place[1], "args": details}


def _name_thread(process: int, process_name: str, thread: int, name: str) -> Iterator[Event]:
    for kind, value in (("process_name", process_name), ("thread_name", name)):
        yield {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": value}}
