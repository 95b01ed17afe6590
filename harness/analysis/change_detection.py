"""Classifies what changed between stored and new evaluations of one candidate, for `harness regress`.

Speedups are compared: they have changed if the interval of the ratio lies beyond `factor`, and the ratio beyond both
noise floors.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from harness.analysis.intervals import STANDARD_ERRORS, SpeedRatio, bootstrap_ratio_interval
from harness.domain import NO_DEVICE, Evaluation, Outcome, Subject, Timing
from harness.domain.options import option

ChangeKind = Literal["same", "fixed", "broken", "faster", "slower", "unreliable", "not_comparable"]

FINE, WORSE, HARNESS_FAILED, NOTHING_COMPARABLE = 0, 1, 3, 4
CHANGE_KINDS: tuple[ChangeKind, ...] = (
    "broken", "slower", "fixed", "faster", "unreliable", "not_comparable", "same"
)  # fmt: skip
CONFIDENCE = 0.95  # one-sided, for a change and for `visible`
FLOOR_DEVIATIONS = 3.0
PRIOR_WEIGHT = 2.0
ENOUGH_STORED = 3  # evaluations whose median excludes an outlier
UNKNOWN_FLOOR = 0.05  # for evaluations without a recorded floor
SUSPICIOUS_SHARE = 0.5  # of log(factor): ratios nearer to 1 need no further evaluations
# Variance of the median relative to the variance of the mean, by number of values.
_MEDIAN_VARIANCE = {1: 1.0, 2: 1.0, 3: 1.35, 4: 1.19, 5: 1.43, 6: 1.29}
_MUST_MATCH = {
    "suite": "suite",
    "problem": "problem",
    "problem_digest": "problem version",
    "candidate_digest": "candidate",
    "workload": "workload",
    "baseline": "baseline",
    "dtype": "dtype",
}
_TIMED_MUST_MATCH = {"driver": "driver", "threads": "number of threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    title: ClassVar[str] = "Options"

    factor: float = option(1.05, "A speedup must change by more than this factor.", min=1.0, show_envvar=True)
    most: int = option(6, "Maximum evaluations of a candidate that seems changed.", envvar=None, min=2, max=50)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor >= 1.0):
            raise ValueError(f"factor must be at least 1, got {self.factor}")
        if self.most < 2:
            raise ValueError(f"a change needs at least two evaluations, got most={self.most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedChange(SpeedRatio):
    """New / stored speedup. `floor`: ratio by which repeats may differ. `visible`: slowdown detected with 95 %."""

    floor: float
    visible: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`before` and `after` are outcomes. Speedups are medians as measured. `stored` is the id compared with."""

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


def classify_change(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> Change:
    """The last of `before` is compared; other evaluations show the scatter. Raises ValueError for an empty group."""
    if not before or not after:
        raise ValueError("a comparison needs a stored and a new evaluation")
    kind, reason = _classify(before, after, rule)
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
    if not after:
        return True
    if len(after) >= rule.most or find_obstacle(before[-1], after[-1]):
        return False
    agreeing = [_is_correct(one) == _is_correct(before[-1]) for one in after]
    if not all(agreeing):
        return len(after) < 2
    return _is_correct(before[-1]) and _speed_is_open(before, after, rule)


def compare_speed(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> SpeedChange | None:
    then, now = _usable(before), _usable(after)
    then = [timing for timing in then if now and timing.clock == now[-1].clock]
    if not then or not now:
        return None
    logs_then, logs_now = ([math.log(timing.speedup) for timing in group] for group in (then, now))
    floor = math.log1p(max(_floor_of(timing) for timing in (*then, *now)))
    share = math.sqrt(_median_variance(len(then)) + _median_variance(len(now)))
    own_error = statistics.fmean(_standard_error(timing) ** 2 for timing in (*then, *now))
    variance, freedom = _estimate_scatter((logs_then, logs_now), (floor / FLOOR_DEVIATIONS) ** 2 + own_error)
    margin = _student(freedom) * share * math.sqrt(variance)
    before_log, after_log = statistics.median(logs_then), statistics.median(logs_now)
    # An apparent slowdown would have been evaluated up to `most` times.
    more = max(rule.most - len(now), 0)
    full_share = math.sqrt(_median_variance(len(then)) + _median_variance(len(now) + more))
    full_margin = _student(freedom + more) * full_share * math.sqrt(variance)
    down, up = _interval_reach(then) if len(then) < ENOUGH_STORED else (0.0, 0.0)
    visible = max(math.log(rule.factor) + max(full_margin, down), floor * full_share) + full_margin
    return SpeedChange.of_logs(
        before_log, after_log, max(margin, up), max(margin, down),
        floor=math.exp(floor * share), visible=math.exp(visible), clock=now[-1].clock,
    )  # fmt: skip


def gate(changes: Iterable[Change]) -> int:
    """Return the exit code: 0 no regression, 1 worse, 3 the harness failed, 4 not comparable."""
    known = list(changes)
    if any(change.is_worse for change in known):
        return WORSE
    if any(change.harness_failed for change in known):
        return HARNESS_FAILED
    compared = [change for change in known if change.kind not in ("not_comparable", "unreliable")]
    return FINE if compared else NOTHING_COMPARABLE


def find_obstacle(before: Evaluation, after: Evaluation) -> str:
    """Return why two evaluations are not comparable, or "". If one was timed, chip, driver and threads must match."""
    for name, word in _MUST_MATCH.items():
        old, new = getattr(before.subject, name), getattr(after.subject, name)
        if old != new:
            return f"other {word}" if name.endswith("digest") else f"other {word}: {old} -> {new}"
    if _is_build_only(before) or _is_build_only(after):
        return _find_build_obstacle(before, after)
    for one, when in ((before, "stored"), (after, "new")):
        if one.outcome.is_error:
            return f"the {when} evaluation ended as {one.outcome}: {one.message}".rstrip(": ")
    devices = (before.subject.device, after.subject.device)
    if NO_DEVICE in devices:  # no device was used (no code, not built): valid for any
        return ""
    if devices[0].split(":")[0] != devices[1].split(":")[0]:
        return f"other device: {devices[0]} -> {devices[1]}"
    return _find_other_machine(before, after) if before.timing or after.timing else ""


def _find_other_machine(before: Evaluation, after: Evaluation) -> str:
    if before.hardware != after.hardware:
        return f"other hardware: {before.hardware or 'unknown'} -> {after.hardware or 'unknown'}"
    then, now = before.facts, after.facts
    for name, word in _TIMED_MUST_MATCH.items():
        if name in then and name in now and then[name] != now[name]:
            return f"other {word}: {then[name]} -> {now[name]}"
    if before.timing and after.timing and before.timing.clock != after.timing.clock:
        return f"timed by another clock: {before.timing.clock} -> {after.timing.clock}"
    return ""


def _is_build_only(one: Evaluation) -> bool:
    return one.outcome is Outcome.NOT_RUN


def _find_build_obstacle(before: Evaluation, after: Evaluation) -> str:
    """A build-only evaluation is comparable with one that ended at or before the build."""
    for one, other, when in ((before, after, "then"), (after, before, "now")):
        if _is_build_only(one) and not _is_build_only(other) and other.subject.device != NO_DEVICE:
            return f"not run {when}: {one.message or 'no device for it'}"
        if other.outcome.is_error:
            return f"an evaluation ended as {other.outcome}: {other.message}".rstrip(": ")
    return ""


def _classify(before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule) -> tuple[ChangeKind, str]:
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
        return _classify_speed(before, after, rule)
    return "same", "" if before[-1].outcome is after[-1].outcome else words


def _is_correct(one: Evaluation) -> bool:
    return one.outcome in (Outcome.CORRECT, Outcome.NOT_RUN)


def _representative(before: Evaluation, after: Sequence[Evaluation]) -> Evaluation:
    return next((one for one in after if _is_correct(one) != _is_correct(before)), after[-1])


def _classify_speed(
    before: Sequence[Evaluation], after: Sequence[Evaluation], rule: GateRule
) -> tuple[ChangeKind, str]:
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
    if len(after) < 2 or not _usable(before):
        return len(after) < 2
    speed = compare_speed(before, after, rule)
    if speed is None:
        return any(one.timing is not None for one in after)  # another one may be undisturbed
    return abs(math.log(speed.ratio)) > SUSPICIOUS_SHARE * math.log(rule.factor)


def _usable(evaluations: Sequence[Evaluation]) -> list[Timing]:
    """Keep ties as measured: the comparison is with itself, not with the baseline."""
    return [
        one.timing
        for one in evaluations
        if one.outcome is Outcome.CORRECT and one.timing and not one.timing.is_doubtful
    ]


def _floor_of(timing: Timing) -> float:
    return UNKNOWN_FLOOR if timing.noise_floor is None else timing.noise_floor


def _standard_error(timing: Timing) -> float:
    if timing.blocks:
        baseline = [block.baseline_reported_us for block in timing.blocks]
        candidate = [block.candidate_reported_us for block in timing.blocks]
        _, low, high = bootstrap_ratio_interval(baseline, candidate, seed=len(timing.blocks))
        width = math.log(high / low)
    elif timing.speedup_low <= 0:
        return math.inf
    else:
        width = max(math.log(timing.speedup_high / timing.speedup_low) - 2 * math.log1p(timing.noise_floor or 0.0), 0.0)
    return width / STANDARD_ERRORS


def _interval_reach(timings: Sequence[Timing]) -> tuple[float, float]:
    center = statistics.median(math.log(timing.speedup) for timing in timings)
    low, high = min(timing.speedup_low for timing in timings), max(timing.speedup_high for timing in timings)
    return (center - math.log(low) if low > 0 else math.inf), math.log(high) - center


def _median_variance(count: int) -> float:
    return _MEDIAN_VARIANCE.get(count, math.pi / 2) / count


def _estimate_scatter(groups: Iterable[Sequence[float]], expected_variance: float) -> tuple[float, float]:
    """Return (variance, degrees of freedom) of one evaluation."""
    squares, freedom = PRIOR_WEIGHT * expected_variance, PRIOR_WEIGHT
    for group in groups:
        mean = statistics.fmean(group)
        squares += sum((value - mean) ** 2 for value in group)
        freedom += len(group) - 1
    return squares / freedom, freedom


def _student(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, CONFIDENCE))
