"""Turns windows of timed GPU calls into a verdict on speed. Pure functions.

A window holds the call and its overhead: publishing inputs, flushing the cache, waking the worker, copying outputs. The
trusted baseline gives the overhead: window less reported time. A candidate's excess over both is added to its reported
time. Waking counts at least as long as the baseline's, so skipping it gains nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.analysis.intervals import ranked_ratio_interval
from harness.domain import Block, Finding, Timing
from harness.evaluation.timing.clocks import (
    CERTAINTY,
    RESAMPLES,
    ClockGap,
    TimingResult,
    choose_half_width,
    decide,
    faster_half,
    interval_of,
    is_certain_tie,
    measure_gap,
    median_reported_us,
)

LEAN_READ_US = 10.0  # from the worker's answer to the first read of its outputs
# Of the overhead: its drift within seconds. Measured on an H200: up to 0.2, with the frequency of the cores.
DRIFT_SHARE = 0.25
SLOWED_SHARE = 0.02  # allowed slowing of the baseline beside a candidate, beyond noise
RESOLVED_US = 10.0  # a finer resolution is useless
TIE_RESOLUTION = 0.25  # of the time, for ties
SIDES = ("baseline", "candidate")
Calls = tuple[Sequence[Block], str]  # blocks and side
NOTED_SHARE, NOTED_US = 0.1, 20.0  # larger corrections of a reported time get a finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """A/B pairs, and A/A pairs from before and after the candidate's worker. `program_us`: overhead of the worker
    program, which a candidate may replace by a faster one."""

    blocks: tuple[Block, ...]
    before: tuple[Block, ...]
    after: tuple[Block, ...]
    program_us: float

    @property
    def lean_us(self) -> float:
        """The largest saving in overhead without a faster call."""
        theirs, mine = (statistics.median(_values(self.blocks, side, "snapshot_us")) for side in SIDES)
        return self.program_us + max(theirs - mine, 0.0) + LEAN_READ_US

    def find_slowing(self) -> float:
        """The baseline's time beside the candidate over that without it; 1.0 if chance."""
        without = max((self.before, self.after), key=lambda blocks: statistics.median(_baseline_us(blocks)))
        beside_us, without_us = _baseline_us(self.blocks), _baseline_us(without)
        gap = measure_gap("beside the candidate", beside_us, without_us)
        usual_us = statistics.median(without_us)
        certain_us = gap.missing_us - CERTAINTY * gap.error_us - SLOWED_SHARE * usual_us
        return statistics.median(beside_us) / usual_us if certain_us > 0 else 1.0

    def count_late_us(self) -> float:
        """The device's work after the candidate's windows, as far as it is certain: late writes that were not read.
        The baseline's time for the same is the usual one, and may drift."""
        mine, theirs = (_values(self.blocks, side, "settling_us") for side in reversed(SIDES))
        tolerated_us = DRIFT_SHARE * statistics.median(theirs)
        gaps = (
            measure_gap("after the window", mine, theirs),
            _compare_medians([(0.0, late) for late in mine], [(0.0, late) for late in theirs]),
        )
        return max(0.0, *(replace(gap, tolerated_us=max(tolerated_us, gap.tolerated_us)).certain_us for gap in gaps))

    def find_gaps(self) -> list[ClockGap]:
        """Against the baseline beside the candidate and without it, since a candidate can prolong the baseline's
        overhead. Without it: before or after, whichever gives less, since the overhead drifts. The A/A gaps are the
        minimum error."""
        every = self.blocks + self.before + self.after
        usual_us = statistics.median(_values(every, "baseline", "wake_us"))
        beside, before, after = (
            _compare((self.blocks, "candidate"), (blocks, "baseline"), usual_us)
            for blocks in (self.blocks, self.before, self.after)
        )
        drift_us = DRIFT_SHARE * statistics.median(time_us for _, time_us in _read_calls(every, "baseline", usual_us))
        without = [min(pair, key=_missing_us) for pair in zip(before, after, strict=True)]
        equal = [
            abs(gap.missing_us) / CERTAINTY
            for blocks in (self.before, self.after)
            for gap in _compare((blocks, "candidate"), (blocks, "baseline"), usual_us)
        ]
        gaps = [*beside, *(replace(gap, tolerated_us=max(drift_us, gap.tolerated_us)) for gap in without)]
        return [replace(gap, error_us=max(gap.error_us, *equal)) for gap in gaps]


def confirm_windows(baseline: str, windows: Windows, noise_floor: float) -> TimingResult:
    slowing, gaps = windows.find_slowing(), windows.find_gaps()
    blocks = [replace(block, baseline_claim_us=block.baseline_claim_us / slowing) for block in windows.blocks]
    ratio, low, high = interval_of(blocks)
    reported_us = median_reported_us(blocks)
    late_us = windows.count_late_us()
    added_us = max(0.0, *(gap.certain_us for gap in gaps)) + late_us
    possible_us = max(added_us, *(gap.possible_us + late_us for gap in gaps)) + windows.lean_us
    share, least = reported_us / (reported_us + added_us), reported_us / (reported_us + possible_us)
    low, high = low / (1 + noise_floor) * least, high * (1 + noise_floor) * share
    candidate_us = reported_us + added_us
    resolution_us = CERTAINTY * max(gap.error_us for gap in gaps) + windows.lean_us
    timing = Timing(
        baseline=baseline,
        baseline_us=statistics.median(_baseline_us(blocks)),
        candidate_us=candidate_us,
        speedup=ratio * share,
        speedup_low=low,
        speedup_high=high,
        verdict="unconfirmed" if resolution_us > candidate_us else decide(low, high),
        blocks=windows.blocks,
        overhead_us=statistics.median(exchange_us for _, exchange_us in _read_calls(windows.blocks, "baseline", 0.0)),
        noise_floor=noise_floor,
        resolution_us=resolution_us,
    )
    return TimingResult(timing=timing, findings=tuple(_describe(timing, slowing, reported_us, added_us)))


def is_worth_repeating(baseline: str, windows: Windows, floor: float) -> bool:
    """Whether the baseline was slower beside the candidate, or only the error of the overhead prevents `faster`: both
    may be drift, or chance in the A/A pairs."""
    if windows.find_slowing() > 1:
        return True
    timing = confirm_windows(baseline, windows, floor).timing
    return timing.verdict in ("tie", "unconfirmed") and interval_of(windows.blocks)[1] > 1 + floor


def is_precise_enough(blocks: Sequence[Block], wanted_half_width: float, floor: float) -> bool:
    """A narrow interval and windows that resolve such times; less precise where it is a tie in any case."""
    ratio, low, high = ranked_ratio_interval(_baseline_us(blocks), _values(blocks, "candidate", "claim_us"))
    error_us = max(gap.error_us for gap in _compare((blocks, "candidate"), (blocks, "baseline"), 0.0))
    certain_us, reported_us = CERTAINTY * error_us, median_reported_us(blocks)
    if is_certain_tie(low, high, floor):
        return certain_us <= TIE_RESOLUTION * reported_us
    is_resolved = certain_us <= max(2 * wanted_half_width * reported_us, RESOLVED_US)
    return (high - low) / 2 < choose_half_width(ratio, wanted_half_width) * ratio and is_resolved


def _compare(candidate: Calls, baseline: Calls, usual_wake_us: float) -> tuple[ClockGap, ClockGap]:
    """By the faster half, which sets the speedup, and by the medians of all calls, which slow calls cannot shift."""
    mine, theirs = (_read_calls(*calls, usual_wake_us) for calls in (candidate, baseline))
    halves = [[exchange_us for _, exchange_us in faster_half(calls, _reported_us)] for calls in (mine, theirs)]
    return measure_gap("in the window", *halves), _compare_medians(mine, theirs)


def _compare_medians(mine: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> ClockGap:
    import numpy as np

    random = np.random.default_rng(len(mine))
    reported, exchanges = np.asarray(mine).T
    pairs, usual = np.stack([reported + exchanges, reported]), np.asarray(theirs)[:, 1]
    picks, other_picks = (random.integers(0, size, size=(RESAMPLES, size)) for size in (pairs.shape[1], usual.size))
    resampled = np.median(pairs[:, picks], axis=2)
    spread = resampled[0] - resampled[1] - np.median(usual[other_picks], axis=1)
    missing_us = float(np.median(pairs[0]) - np.median(pairs[1]) - np.median(usual))
    return ClockGap(where="in the window", missing_us=missing_us, error_us=float(spread.std()))


def _read_calls(blocks: Sequence[Block], side: str, usual_wake_us: float) -> list[tuple[float, float]]:
    """(reported time, overhead) in us."""
    columns = (_values(blocks, side, name) for name in ("claim_us", "judge_us", "wake_us"))
    return [
        (reported, window + max(woken, usual_wake_us) - reported)
        for reported, window, woken in zip(*columns, strict=True)
    ]


def _missing_us(gap: ClockGap) -> float:
    return gap.missing_us


def _reported_us(call: tuple[float, float]) -> float:
    return call[0]


def _values(blocks: Sequence[Block], side: str, name: str) -> list[float]:
    return [getattr(block, f"{side}_{name}") or 0.0 for block in blocks]


def _baseline_us(blocks: Sequence[Block]) -> list[float]:
    return [block.baseline_claim_us for block in blocks]


def _describe(timing: Timing, slowing: float, reported_us: float, added_us: float) -> list[Finding]:
    messages = {}
    if slowing > 1:
        messages["opponent_slowed"] = (
            f"the baseline was {slowing:.2f} times slower beside the candidate; its time without the candidate counts"
        )
    if added_us > NOTED_SHARE * reported_us + NOTED_US:
        messages["reported_time"] = (
            f"reported time {reported_us:.0f} us a call; the evaluator's window shows {timing.candidate_us:.0f} us"
        )
    if timing.verdict == "unconfirmed":
        messages["clock"] = (
            f"{timing.candidate_us:.0f} us a call is too short: the window resolves {timing.resolution_us:.0f} us"
        )
    return [Finding(check=check, severity="warning", message=message) for check, message in messages.items()]
