"""Confirms reported times by the evaluator's clocks; computes a speed verdict from blocks. See docs/measurement.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from harness.analysis.intervals import bootstrap_ratio_interval, ranked_ratio_interval
from harness.domain import Block, Finding, Outcome, Timing, TimingVerdict
from harness.evaluation.results import TimingResult, WrongCall

T = TypeVar("T")

CONFIRMATION_SHARE = 0.25  # of a reported time: more unaccounted time (lower bound) refutes it
HOPELESS = 2.0  # times slower
SURELY_SLOWER, SLOW_US = 3.0, 50_000.0  # times, of calls that take long: a few of them decide
DISTURBED_SHARE = 0.5  # of a reported time: a clock that scatters by more cannot confirm it
GROSS = 12.0  # times more unaccounted time is needed when the clock is disturbed
MINIMUM_RESOLUTION_US = 20.0  # typical wake-up time of a process, and its variation
CERTAINTY = 2.58  # standard errors: 99 %
ENOUGH_READINGS = 5  # per side; fewer may agree by chance
LOWER_QUARTILE = 0.25
FAR_SHARE, FAR = 0.05, 10.0  # of the logarithm of a speedup up to the second
RESAMPLES = 400


def call_suspect(timing: Timing, check: str, message: str) -> TimingResult:
    finding = Finding(check=check, severity="fatal", message=message)
    return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=message, findings=(finding,))


def refuse_wrong_call(timing: Timing, wrong: WrongCall) -> TimingResult:
    return replace(call_suspect(timing, "timed_call", wrong.message), wrong_call=wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGap:
    """Unaccounted time (us) of the candidate, less the baseline's, with its standard error."""

    where: str
    missing_us: float
    error_us: float

    @property
    def resolution_us(self) -> float:
        """The smallest gap that counts against a candidate."""
        return max(CERTAINTY * self.error_us, MINIMUM_RESOLUTION_US)

    @property
    def certain_us(self) -> float:
        return self.missing_us - self.resolution_us

    @property
    def possible_us(self) -> float:
        return self.missing_us + CERTAINTY * self.error_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGaps:
    """`places` has one gap per clock. `wholes` are sums per block, since work moved between phases passes every single
    clock; they are no upper bound. `loading_us` is the baseline's time to copy state, which a candidate may hide.
    """

    places: tuple[ClockGap, ...]
    wholes: tuple[ClockGap, ...]
    loading_us: float = 0.0

    @property
    def resolution_us(self) -> float:
        return max(gap.resolution_us for gap in self.places)

    @property
    def accusing(self) -> tuple[ClockGap, ...]:
        return (*self.places, *self.wholes)

    def count_missing_us(self) -> tuple[float, float]:
        """Return (lower, upper bound) of the unaccounted time."""
        certain_us = max(_count_certain_us(self.places), _count_certain_us(self.wholes))
        return certain_us, max(_count_possible_us(self.places), certain_us) + self.loading_us


def _count_certain_us(gaps: Sequence[ClockGap]) -> float:
    return sum(max(gap.certain_us, 0.0) for gap in gaps)


def _count_possible_us(gaps: Sequence[ClockGap]) -> float:
    return sum(max(gap.missing_us, 0.0) for gap in gaps) + CERTAINTY * math.hypot(*(gap.error_us for gap in gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    reported_us: float
    exchange_us: float  # the evaluator's clock less the reported time
    copy_us: float | None


def _read(blocks: Sequence[Block], side: Literal["baseline", "candidate"]) -> list[_Reading]:
    return [
        _Reading(
            reported_us=getattr(block, f"{side}_reported_us"),
            exchange_us=getattr(block, f"{side}_evaluator_us") - getattr(block, f"{side}_reported_us"),
            copy_us=getattr(block, f"{side}_copy_us"),
        )
        for block in blocks
    ]


def compare_clocks(blocks: Sequence[Block]) -> ClockGaps:
    """Use each side's faster calls, which set the speedup, and the overhead's lower quartile: hidden work shows."""
    sides = (_read(blocks, "candidate"), _read(blocks, "baseline"))
    fast = tuple(faster_half(side, lambda reading: reading.reported_us) for side in sides)

    def add_copy(reading: _Reading) -> float | None:
        return None if reading.copy_us is None else reading.exchange_us + reading.copy_us

    during = _compare("during the call", fast, lambda reading: reading.exchange_us)
    copied = _compare("while its outputs were copied", fast, lambda reading: reading.copy_us)
    whole = _compare("from the start signal to the end of copying", fast, add_copy)
    loading_us = statistics.median(block.baseline_loading_us for block in blocks)
    return ClockGaps(places=during + copied, wholes=whole, loading_us=loading_us)


def faster_half(calls: Sequence[T], time_us: Callable[[T], float]) -> list[T]:
    median = statistics.median(map(time_us, calls))
    return [call for call in calls if time_us(call) <= median]


def _compare(
    where: str, sides: tuple[Sequence[_Reading], ...], take: Callable[[_Reading], float | None]
) -> tuple[ClockGap, ...]:
    candidate, baseline = ([value for value in map(take, readings) if value is not None] for readings in sides)
    return (measure_gap(where, candidate, baseline),) if candidate and baseline else ()


def measure_gap(where: str, mine: Sequence[float], theirs: Sequence[float]) -> ClockGap:
    """Return the difference of the lower quartiles with its bootstrap error."""
    import numpy as np

    random = np.random.default_rng(len(mine))
    samples = [np.asarray(values, dtype=float) for values in (mine, theirs)]
    resampled = [values[random.integers(0, values.size, size=(RESAMPLES, values.size))] for values in samples]
    spread = np.subtract(*(np.quantile(values, LOWER_QUARTILE, axis=1) for values in resampled))
    missing_us = float(np.subtract(*(np.quantile(values, LOWER_QUARTILE) for values in samples)))
    error_us, fewest = float(spread.std()), min(len(mine), len(theirs))
    if fewest < ENOUGH_READINGS:
        error_us = max(error_us, *(max(values) - min(values) for values in (mine, theirs)))
    if fewest == 1:
        error_us = max(error_us, abs(missing_us))
    return ClockGap(where=where, missing_us=missing_us, error_us=error_us)


def interval_of(blocks: Sequence[Block], *, roughly: bool = False) -> tuple[float, float, float]:
    """Return (speedup, low, high), without noise floor."""
    baseline = [block.baseline_reported_us for block in blocks]
    candidate = [block.candidate_reported_us for block in blocks]
    if roughly:
        return ranked_ratio_interval(baseline, candidate)
    return bootstrap_ratio_interval(baseline, candidate, seed=len(blocks))


def median_reported_us(blocks: Sequence[Block]) -> float:
    return statistics.median(block.candidate_reported_us for block in blocks)


def summarise_blocks(baseline: str, blocks: Sequence[Block], noise_floor: float) -> Timing:
    ratio, low, high = interval_of(blocks)
    low, high = low / (1 + noise_floor), high * (1 + noise_floor)
    overheads = [block.baseline_evaluator_us - block.baseline_reported_us for block in blocks]
    return Timing(
        baseline=baseline,
        baseline_us=statistics.median(block.baseline_reported_us for block in blocks),
        candidate_us=median_reported_us(blocks),
        speedup=ratio,
        speedup_low=low,
        speedup_high=high,
        verdict=decide(low, high),
        blocks=tuple(blocks),
        overhead_us=statistics.median(overheads),
        noise_floor=noise_floor,
        resolution_us=compare_clocks(blocks).resolution_us,
    )


def is_hopeless(blocks: Sequence[Block]) -> bool:
    """Return True if the candidate is so much slower in every block that more blocks change nothing."""
    return all(block.candidate_reported_us > HOPELESS * block.baseline_reported_us for block in blocks)


def is_surely_slower(
    baseline_us: float, candidate_us: float, *, slow_us: float = SLOW_US, times: float = SURELY_SLOWER
) -> bool:
    return candidate_us > max(slow_us, times * baseline_us)


def is_certain_tie(low: float, high: float, floor: float) -> bool:
    return 1 / (1 + floor) < low and high < 1 + floor


def choose_half_width(ratio: float, least: float) -> float:
    """Return the relative half width of the interval: a speedup far from 1 needs less precision."""
    return max(least, FAR_SHARE * abs(math.log(min(max(ratio, 1 / FAR), FAR))))


def decide(low: float, high: float) -> TimingVerdict:
    if low > 1:
        return "faster"
    return "slower" if high < 1 else "tie"


def confirm_reported_times(timing: Timing) -> TimingResult:
    """Add the lower bound of the unaccounted time to the candidate's; more than a share of it is `suspect`. The upper
    bound widens the interval. On a disturbed machine only a gross contradiction is `suspect`.
    """
    gaps = compare_clocks(timing.blocks)
    reported_us = timing.candidate_us
    disturbed = timing.conditions is not None and bool(timing.conditions.disturbed)
    accused = next((gap for gap in gaps.accusing if _contradicts(gap, reported_us, disturbed=disturbed)), None)
    if accused is not None:
        message = (
            f"reported time {reported_us:.0f} us a call; the evaluator's clock shows {accused.missing_us:.0f} us more "
            f"{accused.where} than for the baseline (resolution {accused.resolution_us:.0f} us)"
        )
        return call_suspect(timing, "clock", message)
    timing = _charge(timing, gaps)
    resolution_us = gaps.resolution_us
    if resolution_us <= DISTURBED_SHARE * reported_us:
        return TimingResult(timing=timing)
    too_short = resolution_us <= 2 * MINIMUM_RESOLUTION_US
    message = f"{reported_us:.0f} us a call cannot be confirmed: the evaluator's clock resolves {resolution_us:.0f} us"
    return TimingResult(
        timing=replace(timing, verdict="unconfirmed" if too_short else "unreliable"),
        findings=(Finding(check="clock", severity="warning", message=message),),
    )


def _contradicts(gap: ClockGap, reported_us: float, *, disturbed: bool) -> bool:
    least_us = max(CONFIRMATION_SHARE * reported_us, MINIMUM_RESOLUTION_US)
    if disturbed or gap.resolution_us > DISTURBED_SHARE * reported_us:
        least_us = max(GROSS * least_us, gap.resolution_us)
    return gap.certain_us > least_us


def depends_on_clocks(low: float, reported_us: float, gaps: ClockGaps) -> bool:
    """Return True if only unaccounted time prevents `faster`. `low` includes the noise floor."""
    return low > 1 and low * reported_us <= reported_us + gaps.count_missing_us()[1]


def _charge(timing: Timing, gaps: ClockGaps) -> Timing:
    certain_us, possible_us = gaps.count_missing_us()
    reported_us = timing.candidate_us
    share, least = reported_us / (reported_us + certain_us), reported_us / (reported_us + possible_us)
    return replace(scale_speedup(timing, share, lowest=least), candidate_us=reported_us + certain_us)


def scale_speedup(timing: Timing, factor: float, *, lowest: float | None = None) -> Timing:
    """`lowest` is the factor of the interval's lower end. A doubtful time stays doubtful."""
    low, high = timing.speedup_low * (factor if lowest is None else lowest), timing.speedup_high * factor
    verdict = timing.verdict if timing.is_doubtful else decide(low, high)
    return replace(timing, speedup=timing.speedup * factor, speedup_low=low, speedup_high=high, verdict=verdict)


GIVEN = "as_given"
LOSS, LOSS_US = 1.15, 20.0  # in time, of the candidate against the baseline; a difference within either is noise
FEWEST_PAIRS = 3  # of a kind, to charge for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowerInputs:
    """`factor` is the candidate's time with inputs of the kind `step` / that with given ones, beyond the baseline's."""

    step: str
    factor: float


def compare_inputs(step: str, found: Sequence[Block], given: Sequence[Block]) -> SlowerInputs | None:
    """Return None if they differ by chance, or too few are known. Medians: half of a kind's inputs may be slow."""
    if min(len(found), len(given)) < FEWEST_PAIRS:
        return None
    mine, usual = statistics.median(_list_ratios(found)), _list_ratios(given)
    if mine <= statistics.quantiles(usual, n=4)[2] or not _exceeds(mine, given):
        return None
    return SlowerInputs(step=step, factor=mine / statistics.median(usual))


def charge_slowest(result: TimingResult, slower: Sequence[SlowerInputs]) -> TimingResult:
    if not slower:
        return result
    worst, timing = max(slower, key=lambda one: one.factor), result.timing
    charged = replace(scale_speedup(timing, 1 / worst.factor), candidate_us=timing.candidate_us * worst.factor)
    message = (
        f"with inputs of the kind {worst.step} calls take {worst.factor:.2f} times as long as with given ones, "
        "those of the baseline do not; this time counts"
    )
    finding = Finding(check="slower_inputs", severity="warning", message=message)
    return replace(result, timing=charged, findings=(*result.findings, finding))


def _exceeds(ratio: float, given: Sequence[Block]) -> bool:
    usual = statistics.median(_list_ratios(given))
    usual_us = statistics.median(block.baseline_reported_us for block in given)
    return ratio > LOSS * usual and (ratio - usual) * usual_us > LOSS_US


def _list_ratios(blocks: Sequence[Block]) -> list[float]:
    return [block.candidate_reported_us / block.baseline_reported_us for block in blocks]
