"""Holds the candidate's claims against the judge's own clocks, and turns timed blocks into a verdict on speed.

Pure functions of blocks. What the exchange between judge and worker costs is calibrated on the baseline, which runs
through the same program: only what a candidate needs beyond that can be hidden work. Two places are looked at, the call
itself and the copying of its outputs; and both together. On a GPU one window holds all of it, and no claim is needed:
`harness.evaluation.timing.window_clock`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from harness.analysis.intervals import bootstrap_ratio_interval, ranked_ratio_interval
from harness.domain import Block, Finding, Outcome, Timing, TimingVerdict

T = TypeVar("T")

CONFIRMATION_SHARE = 0.25  # of a claim: more time than that found beyond it, for sure, makes it false
DISTURBED_SHARE = 0.5  # of a claim: a clock that scatters by more cannot confirm it
GROSS = 12.0  # how many times more must be missing when the clock is disturbed
MINIMUM_RESOLUTION_US = 20.0  # waking a process takes about that, and varies as much
CERTAINTY = 2.58  # standard errors: 99 %
ENOUGH_READINGS = 5  # of a clock on each side; fewer lie together by chance
LOWER_QUARTILE = 0.25
RESAMPLES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingResult:
    """`outcome` is set when a timed call was wrong or the clocks disagree; then the time does not count."""

    timing: Timing
    outcome: Outcome | None = None
    message: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGap:
    """How much more time one of the judge's clocks finds for the candidate than for the baseline, beyond their claims,
    with the standard error of that. Microseconds."""

    where: str
    missing_us: float
    error_us: float

    @property
    def resolution_us(self) -> float:
        """What this clock cannot tell apart when somebody is to be accused by it."""
        return max(CERTAINTY * self.error_us, MINIMUM_RESOLUTION_US)

    @property
    def certain_us(self) -> float:
        """What is missing for sure."""
        return self.missing_us - self.resolution_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGaps:
    """The gaps of one measurement; what was not looked at is left out.

    `places` are the clocks one by one: during the calls, and while outputs are copied. `wholes` adds up, block by
    block, what both have found: who hides work in another place each time is clean in every place, but not in the sum.
    Few blocks have both, so that it is coarse: it accuses and charges, and is no measure of what may be missing.
    """

    places: tuple[ClockGap, ...]
    wholes: tuple[ClockGap, ...]

    @property
    def resolution_us(self) -> float:
        """What the clocks that a claim is confirmed by cannot tell apart: the coarsest one counts."""
        return max(gap.resolution_us for gap in self.places)

    @property
    def accusing(self) -> tuple[ClockGap, ...]:
        return (*self.places, *self.wholes)

    def count_missing_us(self) -> tuple[float, float]:
        """How much is missing in a claim for sure, and how much may be."""
        certain_us = max(_count_certain_us(self.places), _count_certain_us(self.wholes))
        return certain_us, max(_count_possible_us(self.places), certain_us)


def _count_certain_us(gaps: Sequence[ClockGap]) -> float:
    return sum(max(gap.certain_us, 0.0) for gap in gaps)


def _count_possible_us(gaps: Sequence[ClockGap]) -> float:
    return sum(max(gap.missing_us, 0.0) for gap in gaps) + CERTAINTY * math.hypot(*(gap.error_us for gap in gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What the clocks say of one side's call; None where one was not read."""

    claim_us: float
    exchange_us: float  # of the judge's clock beyond the claim
    copy_us: float | None


def _read(blocks: Sequence[Block], side: Literal["baseline", "candidate"]) -> list[_Reading]:
    return [
        _Reading(
            claim_us=getattr(block, f"{side}_claim_us"),
            exchange_us=getattr(block, f"{side}_judge_us") - getattr(block, f"{side}_claim_us"),
            copy_us=getattr(block, f"{side}_copy_us"),
        )
        for block in blocks
    ]


def compare_clocks(blocks: Sequence[Block]) -> ClockGaps:
    """Only the faster half of each side's calls is looked at, by their claims: the median, and so the speedup, is made
    there. The lower quartile of what the exchange took is the steadiest thing that can be said of it, and who hides
    work in those calls moves it by just that work."""
    sides = (_read(blocks, "candidate"), _read(blocks, "baseline"))
    fast = tuple(faster_half(side, lambda reading: reading.claim_us) for side in sides)

    def add_copy(reading: _Reading) -> float | None:
        return None if reading.copy_us is None else reading.exchange_us + reading.copy_us

    during = _compare("during the call", fast, lambda reading: reading.exchange_us)
    copied = _compare("until its outputs are there", fast, lambda reading: reading.copy_us)
    whole = _compare("from being told to go until its outputs are there", fast, add_copy)
    return ClockGaps(places=during + copied, wholes=whole)


def faster_half(calls: Sequence[T], time_us: Callable[[T], float]) -> list[T]:
    """Those that took no longer than the median."""
    median = statistics.median(map(time_us, calls))
    return [call for call in calls if time_us(call) <= median]


def _compare(
    where: str,
    sides: tuple[Sequence[_Reading], ...],
    take: Callable[[_Reading], float | None],
) -> tuple[ClockGap, ...]:
    """One gap between candidate and baseline; none where one of them was never looked at."""
    candidate, baseline = ([value for value in map(take, readings) if value is not None] for readings in sides)
    return (measure_gap(where, candidate, baseline),) if candidate and baseline else ()


def measure_gap(where: str, mine: Sequence[float], theirs: Sequence[float]) -> ClockGap:
    """The difference of the lower quartiles of two samples, with its bootstrap standard error.

    Resampling few readings finds less than their error: then it is at least as far as they lie apart, and a single one
    proves nothing.
    """
    import numpy as np

    random = np.random.default_rng(len(mine))
    samples = [np.asarray(values, dtype=float) for values in (mine, theirs)]
    resampled = [values[random.integers(0, values.size, size=(RESAMPLES, values.size))] for values in samples]
    spread = np.subtract(*(np.quantile(values, LOWER_QUARTILE, axis=1) for values in resampled))
    missing_us = float(np.subtract(*(np.quantile(values, LOWER_QUARTILE) for values in samples)))
    error_us, fewest = float(spread.std()), min(values.size for values in samples)
    if fewest < ENOUGH_READINGS:
        error_us = max(error_us, *(float(np.ptp(values)) for values in samples))
    if fewest == 1:
        error_us = max(error_us, abs(missing_us))
    return ClockGap(where=where, missing_us=missing_us, error_us=error_us)


def interval_of(blocks: Sequence[Block], *, roughly: bool = False) -> tuple[float, float, float]:
    """(speedup, low, high) of the blocks alone."""
    baseline = [block.baseline_claim_us for block in blocks]
    candidate = [block.candidate_claim_us for block in blocks]
    if roughly:
        return ranked_ratio_interval(baseline, candidate)
    return bootstrap_ratio_interval(baseline, candidate, seed=len(blocks))


def claimed_us(blocks: Sequence[Block]) -> float:
    return statistics.median(block.candidate_claim_us for block in blocks)


def summarise_blocks(baseline: str, blocks: Sequence[Block], noise_floor: float) -> Timing:
    """Median times, the median of the paired ratios with its interval, and the verdict, all before confirmation."""
    ratio, low, high = interval_of(blocks)
    low, high = low / (1 + noise_floor), high * (1 + noise_floor)
    overheads = [block.baseline_judge_us - block.baseline_claim_us for block in blocks]
    return Timing(
        baseline=baseline,
        baseline_us=statistics.median(block.baseline_claim_us for block in blocks),
        candidate_us=claimed_us(blocks),
        speedup=ratio,
        speedup_low=low,
        speedup_high=high,
        verdict=decide(low, high),
        blocks=tuple(blocks),
        overhead_us=statistics.median(overheads),
        noise_floor=noise_floor,
        resolution_us=compare_clocks(blocks).resolution_us,
    )


def decide(low: float, high: float) -> TimingVerdict:
    if low > 1:
        return "faster"
    return "slower" if high < 1 else "tie"


def confirm_claims(timing: Timing) -> TimingResult:
    """Holds the candidate's claims against the judge's clocks.

    What is missing for sure is charged; more than a share of the claim makes it `suspect`. What may be missing widens
    the interval. Noise is no proof: where a clock scatters by half a claim or more, or others used the machine, only a
    gross contradiction makes a candidate `suspect`; otherwise its time is `unreliable` (or `unconfirmed`, if it is
    simply shorter than the clock resolves).
    """
    gaps = compare_clocks(timing.blocks)
    claim_us = timing.candidate_us
    disturbed = timing.conditions is not None and bool(timing.conditions.disturbed)
    accused = next((gap for gap in gaps.accusing if _contradicts(gap, claim_us, disturbed=disturbed)), None)
    if accused is not None:
        message = (
            f"the worker claims {claim_us:.0f} us a call; the judge's clock finds {accused.missing_us:.0f} us more "
            f"{accused.where} than for the baseline (resolution {accused.resolution_us:.0f} us)"
        )
        finding = Finding(check="clock", severity="fatal", message=message)
        return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=message, findings=(finding,))
    timing = _charge(timing, gaps)
    resolution_us = gaps.resolution_us
    if resolution_us <= DISTURBED_SHARE * claim_us:
        return TimingResult(timing=timing)
    too_short = resolution_us <= 2 * MINIMUM_RESOLUTION_US
    message = f"{claim_us:.0f} us a call cannot be confirmed: the judge's clock resolves {resolution_us:.0f} us here"
    return TimingResult(
        timing=replace(timing, verdict="unconfirmed" if too_short else "unreliable"),
        findings=(Finding(check="clock", severity="warning", message=message),),
    )


def _contradicts(gap: ClockGap, claim_us: float, *, disturbed: bool) -> bool:
    gross = GROSS if disturbed or gap.resolution_us > DISTURBED_SHARE * claim_us else 1.0
    return gap.certain_us > max(CONFIRMATION_SHARE * claim_us, MINIMUM_RESOLUTION_US) * gross


def depends_on_clocks(low: float, claim_us: float, gaps: ClockGaps) -> bool:
    """Whether the times alone say `faster`, and only what may be missing in them says otherwise. `low` is the least
    speedup by the times and the noise floor."""
    return low > 1 and low * claim_us <= claim_us + gaps.count_missing_us()[1]


def _charge(timing: Timing, gaps: ClockGaps) -> Timing:
    """Adds what is certainly missing in the claims to the candidate's time, and lets what may be missing count against
    it at the lower end of the interval: too little to be suspect, it gains nothing either."""
    certain_us, possible_us = gaps.count_missing_us()
    claim_us = timing.candidate_us
    share, least = claim_us / (claim_us + certain_us), claim_us / (claim_us + possible_us)
    low, high = timing.speedup_low * least, timing.speedup_high * share
    return replace(
        timing,
        candidate_us=claim_us + certain_us,
        speedup=timing.speedup * share,
        speedup_low=low,
        speedup_high=high,
        verdict=decide(low, high),
    )
