"""Holds the candidate's claims against the judge's own clocks, and turns timed blocks into a verdict on speed.

Pure functions of blocks. What the exchange between judge and worker costs is calibrated on the baseline, which runs
through the same program: only what a candidate needs beyond that can be hidden work. Four places are looked at: the
call itself, the copying of its outputs, and the time before it was told to go, by how long it lasted and by the
processor time that was used in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.domain import Block, Finding, Outcome, Timing, TimingVerdict
from harness.rank.intervals import bootstrap_ratio_interval

CONFIRMATION_SHARE = 0.25  # of a claim: more time than that found beyond it, for sure, makes it false
DISTURBED_SHARE = 0.5  # of a claim: a clock that scatters by more cannot confirm it
GROSS = 12.0  # how many times more must be missing when the clock is disturbed
MINIMUM_RESOLUTION_US = 20.0  # waking a process takes about that, and varies as much
CERTAINTY = 2.58  # standard errors: 99 %
LOWER_QUARTILE, MEDIAN = 0.25, 0.5
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


def compare_clocks(blocks: Sequence[Block]) -> tuple[ClockGap, ...]:
    """The gaps during the calls, while outputs are copied (where they were), while it was woken before them, and (where
    it was watched) in what it did before them.

    Of the first three only the faster half of each side's calls is looked at, by their claims: the median, and so the
    speedup, is made there. The lower quartile of what the exchange took is the steadiest thing that can be said of it,
    and who hides work in those calls moves it by just that work.
    """
    mine = _faster_half(blocks, [block.candidate_claim_us for block in blocks])
    theirs = _faster_half(blocks, [block.baseline_claim_us for block in blocks])
    during = _measure_gap(
        "during the call",
        [block.candidate_judge_us - block.candidate_claim_us for block in mine],
        [block.baseline_judge_us - block.baseline_claim_us for block in theirs],
        LOWER_QUARTILE,
    )
    copied = _gather(block.candidate_copy_us for block in mine), _gather(block.baseline_copy_us for block in theirs)
    awake = _gather(block.candidate_awake_us for block in mine), _gather(block.baseline_awake_us for block in theirs)
    busy = _gather(block.candidate_busy_us for block in blocks), _gather(block.baseline_busy_us for block in blocks)
    after = [_measure_gap("until its outputs are there", *copied, LOWER_QUARTILE)] if all(copied) else []
    woken = [_measure_gap("while it was woken", *awake, LOWER_QUARTILE)] if all(awake) else []
    before = [_measure_gap("before it was told to go", *busy, MEDIAN)] if all(busy) else []
    return (during, *after, *woken, *before)


def compare_helpers(blocks: Sequence[Block]) -> ClockGap | None:
    """The gap before the calls in torch's own threads: they spin after being woken, so it is a coarse one, good for an
    accusation only."""
    mine, theirs = (
        _gather(block.candidate_helpers_us for block in blocks),
        _gather(block.baseline_helpers_us for block in blocks),
    )
    where = "before it was told to go, in torch's own threads,"
    return _measure_gap(where, mine, theirs, MEDIAN) if mine and theirs else None


def _faster_half(blocks: Sequence[Block], claims: Sequence[float]) -> list[Block]:
    median = statistics.median(claims)
    return [block for block, claim_us in zip(blocks, claims, strict=True) if claim_us <= median]


def resolve_clocks(blocks: Sequence[Block]) -> float:
    """What the judge's clocks cannot tell apart, in microseconds: the coarsest one counts."""
    return max(gap.resolution_us for gap in compare_clocks(blocks))


def _gather(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _measure_gap(where: str, mine: Sequence[float], theirs: Sequence[float], quantile: float) -> ClockGap:
    """The difference of a quantile of two samples, with its bootstrap standard error."""
    import numpy as np

    random = np.random.default_rng(len(mine))
    samples = [np.asarray(values, dtype=float) for values in (mine, theirs)]
    resampled = [values[random.integers(0, values.size, size=(RESAMPLES, values.size))] for values in samples]
    spread = np.subtract(*(np.quantile(values, quantile, axis=1) for values in resampled))
    missing_us = float(np.subtract(*(np.quantile(values, quantile) for values in samples)))
    return ClockGap(where=where, missing_us=missing_us, error_us=float(spread.std()))


def interval_of(blocks: Sequence[Block], *, roughly: bool = False) -> tuple[float, float, float]:
    """(speedup, low, high) of the blocks alone; `roughly` takes a fifth of the time."""
    baseline = [block.baseline_claim_us for block in blocks]
    candidate = [block.candidate_claim_us for block in blocks]
    fewer = {"resamples": RESAMPLES} if roughly else {}
    return bootstrap_ratio_interval(baseline, candidate, seed=len(blocks), **fewer)


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
        verdict=_decide(low, high),
        blocks=tuple(blocks),
        overhead_us=statistics.median(overheads),
        noise_floor=noise_floor,
        resolution_us=resolve_clocks(blocks),
    )


def _decide(low: float, high: float) -> TimingVerdict:
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
    helpers = compare_helpers(timing.blocks)
    looked_at = gaps if helpers is None else (*gaps, helpers)
    disturbed = timing.conditions is not None and bool(timing.conditions.disturbed)
    accused = next((gap for gap in looked_at if _contradicts(gap, claim_us, disturbed=disturbed)), None)
    if accused is not None:
        message = (
            f"the worker claims {claim_us:.0f} us a call; the judge's clock finds {accused.missing_us:.0f} us more "
            f"{accused.where} than for the baseline (resolution {accused.resolution_us:.0f} us)"
        )
        finding = Finding(check="clock", severity="fatal", message=message)
        return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=message, findings=(finding,))
    timing = _charge(timing, gaps)
    resolution_us = max(gap.resolution_us for gap in gaps)
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


def _charge(timing: Timing, gaps: Sequence[ClockGap]) -> Timing:
    """Adds what is certainly missing in the claims to the candidate's time, and lets what may be missing count against
    it at the lower end of the interval: too little to be suspect, it gains nothing either."""
    certain_us = sum(max(gap.certain_us, 0.0) for gap in gaps)
    found_us, error_us = sum(max(gap.missing_us, 0.0) for gap in gaps), math.hypot(*(gap.error_us for gap in gaps))
    possible_us = max(found_us + CERTAINTY * error_us, certain_us)
    claim_us = timing.candidate_us
    share, least = claim_us / (claim_us + certain_us), claim_us / (claim_us + possible_us)
    low, high = timing.speedup_low * least, timing.speedup_high * share
    return replace(
        timing,
        candidate_us=claim_us + certain_us,
        speedup=timing.speedup * share,
        speedup_low=low,
        speedup_high=high,
        verdict=_decide(low, high),
    )
