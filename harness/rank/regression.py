"""What changed between two evaluations of one candidate: the stored one and today's.

Compares speedups, not times: each speedup was measured against a baseline timed at the same moment, which cancels
what is different about the day. Does not run anything; `harness regress` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from harness.domain import Evaluation, Outcome, Subject

ChangeKind = Literal["same", "fixed", "broken", "faster", "slower", "unreliable", "not_comparable"]

FINE, WORSE, NOTHING_COMPARABLE = 0, 1, 4
_MUST_MATCH = {
    "suite": "suite",
    "problem": "problem",
    "problem_digest": "problem version",
    "candidate_digest": "candidate",
    "workload": "workload",
    "baseline": "baseline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one subject. `ratio` is the later speedup over the earlier one, None unless both have one."""

    subject: Subject
    kind: ChangeKind
    reason: str
    before: Outcome
    after: Outcome
    before_speedup: float | None = None
    after_speedup: float | None = None
    ratio: float | None = None

    @property
    def is_worse(self) -> bool:
        return self.kind in ("broken", "slower")


def compare_evaluations(before: Evaluation, after: Evaluation, *, factor: float = 1.05) -> Change:
    """Says what changed. A speedup has changed when the two intervals do not overlap and the later is more than
    `factor` times the earlier, or less than 1 / factor of it. Raises ValueError for a factor below 1."""
    if factor < 1.0:
        raise ValueError(f"factor must be at least 1, got {factor}")
    kind, reason = _judge_change(before, after, factor)
    return Change(
        subject=after.subject,
        kind=kind,
        reason=reason,
        before=before.outcome,
        after=after.outcome,
        before_speedup=before.speedup,
        after_speedup=after.speedup,
        ratio=after.speedup / before.speedup if before.speedup and after.speedup else None,
    )


def gate(changes: Iterable[Change]) -> int:
    """The exit code: 0 fine, 1 something got worse, 4 nothing could be compared."""
    compared = [change for change in changes if change.kind != "not_comparable"]
    if not compared:
        return NOTHING_COMPARABLE
    return WORSE if any(change.is_worse for change in compared) else FINE


def _judge_change(before: Evaluation, after: Evaluation, factor: float) -> tuple[ChangeKind, str]:
    obstacle = _find_obstacle(before, after)
    if obstacle:
        return "not_comparable", obstacle
    was_correct, is_correct = (one.outcome is Outcome.CORRECT for one in (before, after))
    if was_correct != is_correct:
        return ("fixed" if is_correct else "broken"), f"{before.outcome} -> {after.outcome}"
    if is_correct:
        return _compare_speed(before, after, factor)
    return "same", "" if before.outcome is after.outcome else f"{before.outcome} -> {after.outcome}"


def _find_obstacle(before: Evaluation, after: Evaluation) -> str:
    """Why the two cannot be compared; "" when they can."""
    for one, when in ((before, "stored"), (after, "new")):
        if not one.outcome.counts_against_model:
            return f"the {when} evaluation ended as {one.outcome}"
    for name, word in _MUST_MATCH.items():
        old, new = getattr(before.subject, name), getattr(after.subject, name)
        if old != new:
            return f"other {word}" if name.endswith("digest") else f"other {word}: {old} -> {new}"
    devices = (before.subject.device, after.subject.device)
    if "none" in devices:  # never reached a device: no code, not built; true on any
        return ""
    if devices[0].split(":")[0] != devices[1].split(":")[0]:
        return f"other device: {devices[0]} -> {devices[1]}"
    if before.hardware != after.hardware:
        return f"other hardware: {before.hardware or 'unknown'} -> {after.hardware or 'unknown'}"
    return ""


def _compare_speed(before: Evaluation, after: Evaluation, factor: float) -> tuple[ChangeKind, str]:
    old, new = before.timing, after.timing
    if old is None and new is None:
        return "same", "timed in neither"
    if old is None or before.speedup is None:
        return "unreliable", "no confirmed time in the stored evaluation"
    if new is None or after.speedup is None:
        return "unreliable", "no confirmed time in the new evaluation"
    ratio = new.speedup / old.speedup
    if ratio > factor and new.speedup_low > old.speedup_high:
        return "faster", ""
    if ratio < 1.0 / factor and new.speedup_high < old.speedup_low:
        return "slower", ""
    return "same", ""
