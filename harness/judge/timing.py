"""Paired timing: baseline and candidate in two workers, in interleaved blocks, on fresh inputs and a cold cache.

The workers' own times are claims. The judge times every round from outside as well; what its clock adds is calibrated
on the baseline, which runs through the same program. A claim that the judge's clock does not bear out is `suspect`, and
one that lies below the clock's resolution is `unconfirmed` and not ranked. Outputs of randomly chosen timed calls are
judged.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from harness.domain import Block, Finding, Outcome, Timing, TimingVerdict
from harness.judge.compare import judge_outputs
from harness.judge.correctness import judge_run
from harness.judge.reference import Reference
from harness.judge.session import ModelSession, Run
from harness.judge.truth import trust_outputs
from harness.rank.intervals import bootstrap_ratio_interval

CONFIRMATION_SHARE = 0.25  # of a claim: more time than that found beyond it, for sure, makes it false
DISTURBED_SHARE = 0.5  # of a claim: a clock that scatters by more cannot confirm it
GROSS = 12.0  # how many times more must be missing when the clock is disturbed
# By how much two processes with the same program may differ for good: a share of a call, and microseconds of each call.
# Memory lies elsewhere, caches map otherwise, one wakes a little later. From running every core problem against itself;
# see docs/measurement.md. A win within it is a tie.
NOISE_FLOORS = {"cuda": (0.02, 10.0), "cpu": (0.05, 8.0)}
MINIMUM_RESOLUTION_US = 20.0  # waking a process takes about that, and varies as much


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPlan:
    """How much is measured. The floor of blocks follows from the baseline alone: a candidate cannot lower it."""

    warmup_calls: int = 3
    min_blocks: int = 20
    min_blocks_when_slow: int = 5  # for baselines of a second a call or more
    max_blocks: int = 150
    budget_s: float = 6.0
    wanted_half_width: float = 0.01
    judged_calls: int = 3
    screened_share: float = 0.3
    max_screened_kept: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingResult:
    """`outcome` is set when a timed call was wrong or the clocks disagree; then the time does not count."""

    timing: Timing
    outcome: Outcome | None = None
    message: str = ""
    findings: tuple[Finding, ...] = ()


class PairedTimer:
    """Measures one candidate against one baseline; both sessions are constructed and hold the same weights."""

    def __init__(
        self, *, baseline: ModelSession, candidate: ModelSession, reference: Reference, plan: TimingPlan, seed: int
    ) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._reference = reference
        self._plan = plan
        self._random = random.Random(seed)
        self._kept: list[tuple[tuple[Any, ...], Run]] = []
        self._screened: list[tuple[tuple[Any, ...], Run]] = []
        self._seen = 0

    def measure(self, name: str, seeds: Iterator[int]) -> TimingResult:
        """`name` is the baseline's. Runs blocks until the interval is narrow enough or the budget is spent."""
        baseline_us = self._warm_up(seeds)
        blocks: list[Block] = []
        began_s = time.monotonic()
        with nullcontext() if self._reference.device.is_cuda else stay_on_first_core():
            while not self._is_enough(blocks, time.monotonic() - began_s, baseline_us):
                blocks.append(self._measure_block(next(seeds)))
        timing = summarise_blocks(name, blocks, find_noise_floor(self._reference.device.torch_device.type, baseline_us))
        wrong = self._find_wrong_call()
        if wrong is None:
            return confirm_claims(timing)
        finding = Finding(check="timed_call", severity="fatal", message=wrong)
        return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=wrong, findings=(finding,))

    def _warm_up(self, seeds: Iterator[int]) -> float:
        """Runs both a few times; the baseline's own time, which sizes the blocks."""
        times = []
        for _ in range(self._plan.warmup_calls):
            inputs = self._make_inputs(next(seeds))
            for session in (self._baseline, self._candidate):
                run = session.call(inputs, self._reference.device)
                if session is self._baseline:
                    times.append(run.returned.claim_us)
        for session in (self._baseline, self._candidate):
            session.collect_garbage()
        return min(times)

    def _is_enough(self, blocks: list[Block], spent_s: float, baseline_us: float) -> bool:
        floor = self._plan.min_blocks if baseline_us < 1e6 else self._plan.min_blocks_when_slow
        if len(blocks) < floor:
            return False
        if len(blocks) >= self._plan.max_blocks or spent_s > self._plan.budget_s:
            return True
        ratio, low, high = _interval(blocks)
        is_narrow = (high - low) / 2 < self._plan.wanted_half_width * ratio
        return is_narrow and resolve_clocks(blocks) <= DISTURBED_SHARE * _claim_us(blocks)

    def _measure_block(self, seed: int) -> Block:
        """One call of each on the same fresh inputs, in random order."""
        inputs = self._make_inputs(seed)
        order = [self._baseline, self._candidate]
        self._random.shuffle(order)
        runs = {}
        for session in order:
            runs[id(session)] = self._call(session, inputs)
        baseline, candidate = runs[id(self._baseline)], runs[id(self._candidate)]
        self._keep_some(inputs, candidate)
        if self._random.random() < self._plan.screened_share:
            self._screen(inputs, baseline, candidate)
        return Block(
            calls=1,
            baseline_claim_us=baseline.returned.claim_us,
            candidate_claim_us=candidate.returned.claim_us,
            baseline_judge_us=baseline.returned.judge_us,
            candidate_judge_us=candidate.returned.judge_us,
            baseline_copy_us=baseline.returned.copy_us,
            candidate_copy_us=candidate.returned.copy_us,
        )

    def _call(self, session: ModelSession, inputs: tuple[Any, ...]) -> Run:
        """A timed call while everything of the other side is stopped: what it may have left running, such as threads
        that spin for a while after their work, would slow this one down."""
        other = self._baseline if session is self._candidate else self._candidate
        with other.paused():
            return session.call_timed(inputs, self._reference.device)

    def _keep_some(self, inputs: tuple[Any, ...], run: Run) -> None:
        """Reservoir sampling: every timed call is as likely to be judged as any other."""
        self._seen += 1
        if len(self._kept) < self._plan.judged_calls:
            self._kept.append((inputs, run))
            return
        slot = self._random.randrange(self._seen)
        if slot < self._plan.judged_calls:
            self._kept[slot] = (inputs, run)

    def _screen(self, inputs: tuple[Any, ...], baseline: Run, candidate: Run) -> None:
        """Keeps a call for judging whose outputs are not close to the baseline's on the same inputs: far cheaper than
        computing the truth, and so done for many calls."""
        if len(self._screened) >= self._plan.max_screened_kept:
            return
        stand_in = trust_outputs(baseline.outputs)
        outcome, _ = judge_outputs(stand_in, candidate.outputs, self._reference.loaded.problem.tolerance, "timed")
        if outcome is not None:
            self._screened.append((inputs, candidate))

    def _find_wrong_call(self) -> str | None:
        """What is wrong with one of the kept calls, if anything is."""
        for inputs, run in (*self._screened, *self._kept):
            truth = self._reference.truth_of(inputs)
            outcome, trial = judge_run(run, truth, self._reference, "timed")
            if outcome is not None:
                return f"a timed call was wrong although the untimed ones were right: {trial.message}"
        return None

    def _make_inputs(self, seed: int) -> tuple[Any, ...]:
        return self._reference.loaded.make_inputs(seed, self._reference.device.torch_device)


@contextmanager
def stay_on_first_core() -> Iterator[None]:
    """Keeps the calling thread off the cores that the workers' own threads are bound to: it wakes their main thread
    where it runs itself."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def find_noise_floor(device_type: str, call_us: float) -> float:
    """How far from 1 the speedup of a program over itself may lie, for calls of that length."""
    share, each_us = NOISE_FLOORS[device_type]
    return share + each_us / call_us


def summarise_blocks(baseline: str, blocks: list[Block], noise_floor: float) -> Timing:
    """Median times, the median of the paired ratios with its bootstrap interval, and the unconfirmed verdict."""
    ratio, low, high = _interval(blocks)
    overheads = [block.baseline_judge_us - block.baseline_claim_us for block in blocks]
    return Timing(
        baseline=baseline,
        baseline_us=statistics.median(block.baseline_claim_us for block in blocks),
        candidate_us=_claim_us(blocks),
        speedup=ratio,
        speedup_low=low,
        speedup_high=high,
        verdict=_decide(low, high, noise_floor),
        blocks=tuple(blocks),
        overhead_us=statistics.median(overheads),
        noise_floor=noise_floor,
    )


def _decide(low: float, high: float, noise_floor: float) -> TimingVerdict:
    if low > 1 + noise_floor:
        return "faster"
    return "slower" if high < 1 / (1 + noise_floor) else "tie"


def confirm_claims(timing: Timing) -> TimingResult:
    """Holds the candidate's claims against the judge's clocks, with the exchange calibrated on the baseline.

    Time may be missing in the claims themselves, or be put off until the outputs are copied. Noise is no proof: where
    a clock scatters by half a claim or more, only a gross contradiction makes a candidate `suspect`; otherwise its
    time is `unreliable` (or `unconfirmed`, if it is simply shorter than the clock resolves).
    """
    claim_us = timing.candidate_us
    gaps = compare_clocks(timing.blocks)
    for gap in gaps:
        gross = GROSS if gap.resolution_us > DISTURBED_SHARE * claim_us else 1.0
        if gap.certain_us > max(CONFIRMATION_SHARE * claim_us, MINIMUM_RESOLUTION_US) * gross:
            message = (
                f"the worker claims {claim_us:.0f} us a call; the judge's clock finds {gap.missing_us:.0f} us more "
                f"{gap.where} than for the baseline (resolution {gap.resolution_us:.0f} us)"
            )
            finding = Finding(check="clock", severity="fatal", message=message)
            return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=message, findings=(finding,))
    timing = _charge_missing(timing, gaps[0].certain_us)
    resolution_us = max(gap.resolution_us for gap in gaps)
    if resolution_us <= DISTURBED_SHARE * claim_us:
        return TimingResult(timing=timing)
    too_short = resolution_us <= 2 * MINIMUM_RESOLUTION_US
    message = f"{claim_us:.0f} us a call cannot be confirmed: the judge's clock resolves {resolution_us:.0f} us here"
    return TimingResult(
        timing=replace(timing, verdict="unconfirmed" if too_short else "unreliable"),
        findings=(Finding(check="clock", severity="warning", message=message),),
    )


def _charge_missing(timing: Timing, certain_us: float) -> Timing:
    """Adds what is certainly missing in the claims to the candidate's time: too little to be suspect, it gains
    nothing either."""
    if certain_us <= 0:
        return timing
    share = timing.candidate_us / (timing.candidate_us + certain_us)
    low, high = timing.speedup_low * share, timing.speedup_high * share
    return replace(
        timing,
        candidate_us=timing.candidate_us + certain_us,
        speedup=timing.speedup * share,
        speedup_low=low,
        speedup_high=high,
        verdict=_decide(low, high, timing.noise_floor or 0.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGap:
    """How much more one of the judge's clocks finds for the candidate than for the baseline, beyond their claims
    (a median), and the 99 % confidence half-width of that. Microseconds."""

    where: str
    missing_us: float
    resolution_us: float

    @property
    def certain_us(self) -> float:
        return self.missing_us - self.resolution_us


def compare_clocks(blocks: Sequence[Block]) -> tuple[ClockGap, ClockGap]:
    """The gap during the calls, and the one while outputs are copied."""
    during = [
        (block.candidate_judge_us - block.candidate_claim_us) - (block.baseline_judge_us - block.baseline_claim_us)
        for block in blocks
    ]
    after = [block.candidate_copy_us - block.baseline_copy_us for block in blocks]
    return _measure_gap("during the call", during), _measure_gap("until its outputs are there", after)


def resolve_clocks(blocks: Sequence[Block]) -> float:
    """What the judge's clocks cannot tell apart, in microseconds: the coarser one counts."""
    return max(gap.resolution_us for gap in compare_clocks(blocks))


def _claim_us(blocks: Sequence[Block]) -> float:
    return statistics.median(block.candidate_claim_us for block in blocks)


def _measure_gap(where: str, excess: Sequence[float]) -> ClockGap:
    missing_us = statistics.median(excess)
    spread = 1.4826 * statistics.median(abs(value - missing_us) for value in excess)
    standard_error = 1.2533 * spread / math.sqrt(len(excess))
    return ClockGap(where=where, missing_us=missing_us, resolution_us=max(2.58 * standard_error, MINIMUM_RESOLUTION_US))


def _interval(blocks: list[Block]) -> tuple[float, float, float]:
    baseline = [block.baseline_claim_us for block in blocks]
    candidate = [block.candidate_claim_us for block in blocks]
    return bootstrap_ratio_interval(baseline, candidate, seed=len(blocks))
