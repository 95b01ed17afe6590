"""Turns windows of timed GPU calls into a verdict on speed. Pure functions.

A window holds the call and its overhead: publishing inputs, flushing the cache, waking the worker, copying outputs. The
trusted baseline gives the overhead: window less reported time. A candidate's excess over both is added to its reported
time. Waking counts at least as long as the baseline's, so skipping it gains nothing.

The lower end of the speedup's interval needs no reported time: a candidate's calls count with the evaluator's time from
GO until outputs are read, and with what may be hidden outside of that.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.domain import Block, Finding, Timing
from harness.evaluation.timing.clocks import (
    CERTAINTY,
    MINIMUM_RESOLUTION_US,
    RESAMPLES,
    ClockGap,
    TimingResult,
    choose_half_width,
    compare_quantiles,
    decide,
    faster_half,
    interval_of,
    is_certain_tie,
    is_hopeless,
    measure_gap,
    median_reported_us,
)

SWITCH_US = 150.0  # between the contexts of two processes, on an H100
READ_START_US = 10.0  # from the start of a copy to its first byte
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
    """A/B pairs, and A/A pairs from before and after the candidate's worker."""

    blocks: tuple[Block, ...]
    before: tuple[Block, ...]
    after: tuple[Block, ...]

    @property
    def resolution_us(self) -> float:
        """What a worker program without overhead could save, late work until outputs are read, and the error of the
        rest."""
        program_us = _median(self.blocks, "baseline", "go_us") - _median(self.blocks, "baseline", "claim_us")
        unread_us = _median(self.blocks, "candidate", "unread_us") + READ_START_US
        return program_us + unread_us + CERTAINTY * max(gap.error_us for gap in self.find_outside_gaps())

    def find_slowing(self) -> float:
        """The baseline's time beside the candidate over that without it; 1.0 if chance."""
        without = max((self.before, self.after), key=lambda blocks: statistics.median(_baseline_us(blocks)))
        beside_us, without_us = _baseline_us(self.blocks), _baseline_us(without)
        # The lower quartile is steadier; only the median shows slowing that spares a quarter of the calls.
        gaps = measure_gap("beside the candidate", beside_us, without_us), _measure_medians(beside_us, without_us)
        usual_us = statistics.median(without_us)
        certain_us = max(gap.missing_us - CERTAINTY * gap.error_us for gap in gaps)
        return statistics.median(beside_us) / usual_us if certain_us > SLOWED_SHARE * usual_us else 1.0

    def count_late_us(self) -> float:
        """The device's work after the candidate's windows, as far as it is certain: late writes that were not read.
        The baseline's time for the same is the usual one, and may drift."""
        mine, theirs = (_values(self.blocks, side, "settling_us") for side in reversed(SIDES))
        tolerated_us = DRIFT_SHARE * statistics.median(theirs)
        gaps = (
            measure_gap("after the window", mine, theirs),
            _measure_medians(mine, theirs),
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

    def find_outside_gaps(self) -> list[ClockGap]:
        """Waking and reading outputs, of the candidate less those of the baseline, in the same pairs and without the
        candidate, for all calls and the faster half."""
        without = (_compare_outside(self.blocks, blocks) for blocks in (self.before, self.after))
        return [*_pair_outside(self.blocks), *(min(pair, key=_missing_us) for pair in zip(*without, strict=True))]

    def count_outside_us(self) -> float:
        """The largest part of a call that may lie before GO or be read too late. While inputs are published, that
        takes two context switches."""
        beside_us, *without_us = (_Usual.of(blocks).published_us for blocks in (self.blocks, self.before, self.after))
        excess_us = statistics.median(_published_us(self.blocks, "candidate")) - min(beside_us, max(without_us))
        excess_us = excess_us if excess_us > SWITCH_US / 2 else 0.0
        return max(0.0, *(gap.possible_us for gap in self.find_outside_gaps())) + excess_us

    def count_each_outside_us(self) -> list[float]:
        """The same for each call, with late work: medians miss what is hidden in a different phase of each call."""
        usual = _Usual.of(self.blocks)
        columns = (
            _outside_us(self.blocks, "candidate", usual),
            _published_us(self.blocks, "candidate"),
            _values(self.blocks, "candidate", "settling_us"),
        )
        late_us = max(DRIFT_SHARE * usual.settling_us, MINIMUM_RESOLUTION_US)
        return [
            outside
            - (usual.wake_us + usual.reading_us)
            + _exceed(published, usual.published_us, SWITCH_US / 2)
            + _exceed(settling, usual.settling_us, late_us)
            for outside, published, settling in zip(*columns, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Usual:
    """Medians of the baseline. Shorter times of a candidate count as these, so that they make up for nothing."""

    wake_us: float
    reading_us: float
    published_us: float
    settling_us: float

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> _Usual:
        return cls(
            wake_us=_median(blocks, "baseline", "wake_us"),
            reading_us=statistics.median(_reading_us(blocks, "baseline")),
            published_us=statistics.median(_published_us(blocks, "baseline")),
            settling_us=_median(blocks, "baseline", "settling_us"),
        )


def confirm_windows(baseline: str, windows: Windows, noise_floor: float) -> TimingResult:
    slowing = windows.find_slowing()
    blocks = [replace(block, baseline_claim_us=block.baseline_claim_us / slowing) for block in windows.blocks]
    ratio, _, high = interval_of(blocks)
    reported_us, late_us = median_reported_us(blocks), windows.count_late_us()
    added_us = max(0.0, *(gap.certain_us for gap in windows.find_gaps())) + late_us
    share = reported_us / (reported_us + added_us)
    outside_us = [windows.count_outside_us() + late_us] * len(blocks)
    longest = (_prolong(blocks, added) for added in (outside_us, windows.count_each_outside_us()))
    low = min(ratio * share, *(interval_of(calls)[1] for calls in longest)) / (1 + noise_floor)
    high = high * (1 + noise_floor) * share
    candidate_us, resolution_us = reported_us + added_us, windows.resolution_us
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
    """Whether the baseline was slower beside the candidate, or only the overhead before GO and of reading prevents
    `faster`: both may be drift, or chance in the A/A pairs. Neither matters to a far slower candidate."""
    if is_hopeless(windows.blocks):
        return False
    if windows.find_slowing() > 1:
        return True
    timing = confirm_windows(baseline, windows, floor).timing
    return timing.verdict in ("tie", "unconfirmed") and interval_of(_prolong(windows.blocks))[1] > 1 + floor


def is_certainly_faster(blocks: Sequence[Block], floor: float) -> bool:
    """By reported times."""
    return interval_of(blocks, roughly=True)[1] > 1 + floor


def is_precise_enough(blocks: Sequence[Block], wanted_half_width: float, floor: float) -> bool:
    """A narrow interval and windows that resolve such times; less precise where it is a tie in any case."""
    ratio, low, high = interval_of(blocks, roughly=True)
    error_us = max(gap.error_us for gap in _pair_outside(blocks))
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


def _prolong(blocks: Sequence[Block], outside_us: Sequence[float] = ()) -> list[Block]:
    """The candidate's calls by the evaluator's clock, from GO to the first byte of the outputs that it reads, and what
    is added to each."""
    columns = (
        *(_values(blocks, "candidate", name) for name in ("go_us", "unread_us")),
        outside_us or [0.0] * len(blocks),
    )
    longest = [go + unread + READ_START_US + outside for go, unread, outside in zip(*columns, strict=True)]
    return [replace(block, candidate_claim_us=time_us) for block, time_us in zip(blocks, longest, strict=True)]


def _pair_outside(blocks: Sequence[Block]) -> list[ClockGap]:
    """Paired differences."""
    usual, halves = _Usual.of(blocks), (blocks, _faster_half(blocks))
    pairs = (zip(*(_outside_us(half, side, usual) for side in SIDES), strict=True) for half in halves)
    return [_measure_medians([mine - theirs for theirs, mine in pair], [0.0]) for pair in pairs]


def _compare_outside(blocks: Sequence[Block], others: Sequence[Block]) -> list[ClockGap]:
    usual, halves = _Usual.of(others), (blocks, _faster_half(blocks))
    theirs = _outside_us(others, "baseline", usual)
    return [_measure_medians(_outside_us(half, "candidate", usual), theirs) for half in halves]


def _outside_us(blocks: Sequence[Block], side: str, usual: _Usual) -> list[float]:
    columns = (_values(blocks, side, "wake_us"), _reading_us(blocks, side))
    return [max(wake, usual.wake_us) + max(reading, usual.reading_us) for wake, reading in zip(*columns, strict=True)]


def _reading_us(blocks: Sequence[Block], side: str) -> list[float]:
    columns = (_values(blocks, side, name) for name in ("snapshot_us", "unread_us"))
    return [snapshot - unread for snapshot, unread in zip(*columns, strict=True)]


def _published_us(blocks: Sequence[Block], side: str) -> list[float]:
    columns = (_values(blocks, side, name) for name in ("judge_us", "go_us", "snapshot_us"))
    return [window - go - snapshot for window, go, snapshot in zip(*columns, strict=True)]


def _exceed(time_us: float, usual_us: float, tolerated_us: float) -> float:
    return time_us - usual_us if time_us - usual_us > tolerated_us else 0.0


def _median(blocks: Sequence[Block], side: str, name: str) -> float:
    return float(statistics.median(_values(blocks, side, name)))


def _faster_half(blocks: Sequence[Block]) -> list[Block]:
    return faster_half(blocks, lambda block: block.candidate_claim_us)


def _measure_medians(mine: Sequence[float], theirs: Sequence[float]) -> ClockGap:
    return compare_quantiles("in the window", mine, theirs, 0.5)


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
