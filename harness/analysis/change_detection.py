"""What became of one candidate between its stored evaluations and those made of it now: the decision of the gate.

Compares speedups, never times of different days: each speedup was measured against a baseline timed in the same
moments, which cancels what is different about the day. Pure functions of evaluations; `harness regress` makes them.

How a change of speed is told from noise. Two processes with one program differ for good by up to the noise floor of
their problem, so repeated evaluations scatter by more than their own intervals say. The scatter is estimated from the
evaluations at hand together with the floor, which is taken to be three standard deviations and to weigh as much as
`PRIOR_WEIGHT` more evaluations. The speed has changed when the whole interval of the ratio lies beyond `factor`, and
the ratio beyond what the floor lets two such groups of evaluations differ by. Now and then one evaluation comes out
beside all others. Of those made now the median leaves that out; of one or two stored ones nobody can tell, so as long
as there are no more the ratio may lie wherever their own intervals let it. `needs_more` asks for further evaluations
until nothing looks changed, or there are enough to decide.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.intervals import bootstrap_ratio_interval
from harness.domain import Evaluation, Outcome, Subject, Timing

ChangeKind = Literal["same", "fixed", "broken", "faster", "slower", "unreliable", "not_comparable"]

FINE, WORSE, HARNESS_FAILED, NOTHING_COMPARABLE = 0, 1, 3, 4
CHANGE_KINDS: tuple[ChangeKind, ...] = (
    "broken", "slower", "fixed", "faster", "unreliable", "not_comparable", "same"
)  # fmt: skip
CONFIDENCE = 0.95  # one-sided, of a change and of what would have been seen
FLOOR_DEVIATIONS = 3.0
PRIOR_WEIGHT = 2.0
ENOUGH_STORED = 3  # evaluations, for their median not to be a stray one
UNKNOWN_FLOOR = 0.05  # of evaluations made before floors were recorded
SUSPICIOUS_SHARE = 0.5  # of the factor, on a logarithmic scale: nearer to 1 than that, nothing is looked into
# What the median of a few values scatters more than their mean, in variance.
_MEDIAN_COST = {1: 1.0, 2: 1.0, 3: 1.35, 4: 1.19, 5: 1.43, 6: 1.29}
_MUST_MATCH = {
    "suite": "suite",
    "problem": "problem",
    "problem_digest": "problem version",
    "candidate_digest": "candidate",
    "workload": "workload",
    "baseline": "baseline",
}
_TIMED_MUST_MATCH = {"driver": "driver", "threads": "number of threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """`factor`: by how much a speedup must have changed; `most`: evaluations made now of one candidate at most."""

    factor: float = 1.05
    most: int = 6

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor >= 1.0):
            raise ValueError(f"factor must be at least 1, got {self.factor}")
        if self.most < 2:
            raise ValueError(f"a change must be seen at least twice, got most={self.most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedChange:
    """The ratio of today's speedup to the stored one, with its interval. `floor`: a ratio by which two such groups of
    evaluations of one program may differ. `visible`: how many times slower the candidate must have become to be found
    with 95 % probability."""

    before: float
    after: float
    ratio: float
    low: float
    high: float
    floor: float
    visible: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one candidate. `before` and `after` are outcomes, None where there is no evaluation; the speedups
    are medians of what was measured, ties included. `evaluations` were made now; `stored` is the id compared with."""

    subject: Subject
    kind: ChangeKind
    reason: str = ""
    before: Outcome | None = None
    after: Outcome | None = None
    speed: SpeedChange | None = None
    evaluations: int = 0
    stored: int | None = None
    harness_failed: bool = False

    @property
    def is_worse(self) -> bool:
        return self.kind in ("broken", "slower")

    @property
    def before_speedup(self) -> float | None:
        return self.speed.before if self.speed else None

    @property
    def after_speedup(self) -> float | None:
        return self.speed.after if self.speed else None


def judge_change(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> Change:
    """Says what changed. `before` are stored evaluations of one candidate under the same conditions, the one that is
    compared with last; `after` those made now. Raises ValueError if either is empty."""
    if not before or not after:
        raise ValueError("a comparison needs an evaluation of then and one of now")
    kind, reason = _judge(before, after, rule)
    speed = compare_speed(before, after, rule) if kind in ("same", "faster", "slower") else None
    return Change(
        subject=after[-1].subject,
        kind=kind,
        reason=reason,
        before=before[-1].outcome,
        after=_representative(before[-1], after).outcome,
        speed=speed,
        evaluations=len(after),
        harness_failed=any(one.outcome is Outcome.HARNESS_ERROR for one in after),
    )


def needs_more(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> bool:
    """Whether one more evaluation now would help to decide. What looks bad is always made again before it is said."""
    if not after:
        return True
    if len(after) >= rule.most or find_obstacle(before[-1], after[-1]):
        return False
    agreeing = [_is_correct(one) == _is_correct(before[-1]) for one in after]
    if not all(agreeing):
        return len(after) < 2
    return _is_correct(before[-1]) and _speed_is_open(before, after, rule)


def compare_speed(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> SpeedChange | None:
    """The change of speed between two groups of evaluations; None if one of them has no confirmed time."""
    then, now = _usable(before), _usable(after)
    if not then or not now:
        return None
    logs_then, logs_now = ([math.log(timing.speedup) for timing in group] for group in (then, now))
    floor = math.log1p(max(_floor_of(timing) for timing in (*then, *now)))
    share = math.sqrt(_median_variance(len(then)) + _median_variance(len(now)))
    own_error = statistics.fmean(_own_error(timing) ** 2 for timing in (*then, *now))
    variance, freedom = _estimate_scatter((logs_then, logs_now), (floor / FLOOR_DEVIATIONS) ** 2 + own_error)
    margin = _student(freedom) * share * math.sqrt(variance)
    before_log, after_log = statistics.median(logs_then), statistics.median(logs_now)
    change = after_log - before_log
    # Had it looked slower, there would have been more evaluations.
    more = max(rule.most - len(now), 0)
    full_share = math.sqrt(_median_variance(len(then)) + _median_variance(len(now) + more))
    full_margin = _student(freedom + more) * full_share * math.sqrt(variance)
    down, up = _own_reach(then) if len(then) < ENOUGH_STORED else (0.0, 0.0)
    visible = max(math.log(rule.factor) + max(full_margin, down), floor * full_share) + full_margin
    return SpeedChange(
        before=math.exp(before_log),
        after=math.exp(after_log),
        ratio=math.exp(change),
        low=math.exp(change - max(margin, up)),
        high=math.exp(change + max(margin, down)),
        floor=math.exp(floor * share),
        visible=math.exp(visible),
    )


def gate(changes: Iterable[Change]) -> int:
    """The exit code: 0 fine, 1 something got worse, 3 the harness failed, 4 nothing could be compared."""
    known = list(changes)
    if any(change.is_worse for change in known):
        return WORSE
    if any(change.harness_failed for change in known):
        return HARNESS_FAILED
    compared = [change for change in known if change.kind not in ("not_comparable", "unreliable")]
    return FINE if compared else NOTHING_COMPARABLE


def find_obstacle(before: Evaluation, after: Evaluation) -> str:
    """Why two evaluations cannot be compared; "" when they can. Chip, driver and threads matter to what was timed."""
    for name, word in _MUST_MATCH.items():
        old, new = getattr(before.subject, name), getattr(after.subject, name)
        if old != new:
            return f"other {word}" if name.endswith("digest") else f"other {word}: {old} -> {new}"
    if _is_build_only(before) or _is_build_only(after):
        return _find_build_obstacle(before, after)
    for one, when in ((before, "stored"), (after, "new")):
        if one.outcome is Outcome.HARNESS_ERROR:
            return f"the {when} evaluation ended as {one.outcome}: {one.message}".rstrip(": ")
    devices = (before.subject.device, after.subject.device)
    if "none" in devices:  # never reached a device: no code, not built; true on any
        return ""
    if devices[0].split(":")[0] != devices[1].split(":")[0]:
        return f"other device: {devices[0]} -> {devices[1]}"
    return _find_other_machine(before, after) if before.timing or after.timing else ""


def _find_other_machine(before: Evaluation, after: Evaluation) -> str:
    if before.hardware != after.hardware:
        return f"other hardware: {before.hardware or 'unknown'} -> {after.hardware or 'unknown'}"
    then, now = dict(before.environment), dict(after.environment)
    for name, word in _TIMED_MUST_MATCH.items():
        if name in then and name in now and then[name] != now[name]:
            return f"other {word}: {then[name]} -> {now[name]}"
    return ""


def _is_build_only(one: Evaluation) -> bool:
    """Built, linked and loaded where no device was."""
    return one.outcome is Outcome.NOT_RUN


def _find_build_obstacle(before: Evaluation, after: Evaluation) -> str:
    """What was only built says something about what was only built or not even that."""
    for one, other, when in ((before, after, "then"), (after, before, "now")):
        if _is_build_only(one) and not _is_build_only(other) and other.subject.device != "none":
            return f"not run {when}: {one.message or 'no device for it'}"
        if other.outcome is Outcome.HARNESS_ERROR:
            return f"an evaluation ended as {other.outcome}: {other.message}".rstrip(": ")
    return ""


def _judge(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> tuple[ChangeKind, str]:
    obstacles = [obstacle for one in after if (obstacle := find_obstacle(before[-1], one))]
    if obstacles:
        return "not_comparable", obstacles[0]
    agreeing = [_is_correct(one) == _is_correct(before[-1]) for one in after]
    words = f"{before[-1].outcome} -> {_representative(before[-1], after).outcome}"
    if not any(agreeing):
        return ("broken" if _is_correct(before[-1]) else "fixed"), words
    if not all(agreeing):
        return "unreliable", f"{words} in {agreeing.count(False)} of {len(after)} evaluations"
    if before[-1].outcome is Outcome.CORRECT:
        return _judge_speed(before, after, rule)
    return "same", "" if before[-1].outcome is after[-1].outcome else words


def _is_correct(one: Evaluation) -> bool:
    """Correct, or as far as that can be said without a device."""
    return one.outcome in (Outcome.CORRECT, Outcome.NOT_RUN)


def _representative(before: Evaluation, after: Sequence[Evaluation]) -> Evaluation:
    """Of today's evaluations the one to show: the first that differs."""
    return next((one for one in after if _is_correct(one) != _is_correct(before)), after[-1])


def _judge_speed(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> tuple[ChangeKind, str]:
    if all(one.timing is None for one in (*before, *after)):
        return "same", "timed in neither"
    speed = compare_speed(before, after, rule)
    if speed is None:
        when = "stored" if not _usable(before) else "new"
        return "unreliable", f"no confirmed time in the {when} evaluation"
    if speed.high < 1 / rule.factor and speed.ratio < 1 / speed.floor:
        return ("slower", "") if _is_seen_twice(after) else ("unreliable", "only one confirmed time now")
    if speed.low > rule.factor and speed.ratio > speed.floor:
        return ("faster", "") if _is_seen_twice(after) else ("unreliable", "only one confirmed time now")
    return "same", ""


def _is_seen_twice(after: Sequence[Evaluation]) -> bool:
    return len(_usable(after)) >= 2


def _speed_is_open(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> bool:
    """Two evaluations at least, and as many as there may be for what does not look the same."""
    if len(after) < 2 or not _usable(before):
        return len(after) < 2
    speed = compare_speed(before, after, rule)
    if speed is None:
        return any(one.timing is not None for one in after)  # disturbed: a later one may be calm
    return abs(math.log(speed.ratio)) > SUSPICIOUS_SHARE * math.log(rule.factor)


def _usable(evaluations: Sequence[Evaluation]) -> list[Timing]:
    """The confirmed timings. What ties counts as measured: it is compared with itself, not with the baseline."""
    return [
        one.timing
        for one in evaluations
        if one.outcome is Outcome.CORRECT and one.timing and one.timing.verdict not in ("unreliable", "unconfirmed")
    ]


def _floor_of(timing: Timing) -> float:
    return UNKNOWN_FLOOR if timing.noise_floor is None else timing.noise_floor


def _own_error(timing: Timing) -> float:
    """The standard error of the logarithm of one measured speedup, by the scatter of its own blocks."""
    if timing.blocks:
        baseline = [block.baseline_claim_us for block in timing.blocks]
        candidate = [block.candidate_claim_us for block in timing.blocks]
        _, low, high = bootstrap_ratio_interval(baseline, candidate, seed=len(timing.blocks))
        width = math.log(high / low)
    elif timing.speedup_low <= 0:
        return math.inf
    else:
        width = max(math.log(timing.speedup_high / timing.speedup_low) - 2 * math.log1p(timing.noise_floor or 0.0), 0.0)
    return width / (2 * 1.96)


def _own_reach(timings: Sequence[Timing]) -> tuple[float, float]:
    """How far below and above their median, as logarithms, their own intervals reach: these are meant to hold what
    another measurement would give."""
    center = statistics.median(math.log(timing.speedup) for timing in timings)
    low, high = min(timing.speedup_low for timing in timings), max(timing.speedup_high for timing in timings)
    return (center - math.log(low) if low > 0 else math.inf), math.log(high) - center


def _median_variance(count: int) -> float:
    """Of the median of so many values, as a multiple of the variance of one."""
    return _MEDIAN_COST.get(count, math.pi / 2) / count


def _estimate_scatter(groups: Iterable[Sequence[float]], expected_variance: float) -> tuple[float, float]:
    """(variance, degrees of freedom) of a single evaluation: what is expected, corrected by what is seen."""
    squares, freedom = PRIOR_WEIGHT * expected_variance, PRIOR_WEIGHT
    for group in groups:
        mean = statistics.fmean(group)
        squares += sum((value - mean) ** 2 for value in group)
        freedom += len(group) - 1
    return squares / freedom, freedom


def _student(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, CONFIDENCE))
