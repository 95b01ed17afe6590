"""Paired timing on a GPU: interleaved windows of baseline and candidate, same fresh inputs, cold cache.

A/A pairs before and after the candidate's worker show whether it slowed the baseline; then the faster time counts.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from harness.domain import Block, Conditions, Finding, HarnessError, Outcome, Timing
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.timing.chosen_calls import ChosenCalls
from harness.evaluation.timing.clocks import TimingResult, summarise_blocks
from harness.evaluation.timing.noise_floor import find_device_floor
from harness.evaluation.timing.paired import is_hopeless, mark_disturbed_unreliable, pin_to_cores
from harness.evaluation.timing.plan import TimingPlan
from harness.evaluation.timing.system_conditions import ConditionSampler
from harness.evaluation.timing.window_clock import Windows, confirm_windows, is_precise_enough
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import ModelSession, Run

EQUAL_PAIRS, LEAST_EQUAL_PAIRS, EQUAL_S = 20, 5, 0.4  # A/A pairs, before and after the candidate
MAX_PAIRS, ASK_EVERY = 200, 10
HOPELESS_PAIRS = 8  # enough for a candidate that is far slower in each of them
MAX_WARMUP_CALLS = 12
PATIENCE = 10.0  # times the budget: then fewer pairs are enough
KEPT_SHARE = 0.2  # of pairs: the outputs must not change until the last call
MAX_PINS = 6
SETTLE_S = 10.0  # for an ended worker to leave the device
OVERWRITTEN = "an output of an earlier call changed before the last timed call ended"

Open = Callable[[], AbstractContextManager[ModelSession]]


class WindowTimer:
    def __init__(self, *, reference: Reference, plan: TimingPlan, seed: int) -> None:
        self._reference = reference
        self._device = reference.device
        self._plan = plan
        self._random = random.Random(seed)
        self._chosen = ChosenCalls(reference, replace(plan.choice, screened_share=1.0), self._random)
        self._pins = 0
        self._equal: list[Timing] = []  # A/A
        self._program_us: list[float] = []  # the baseline's overhead from GO to the answer

    def measure(
        self,
        name: str,
        open_baseline: Open,
        open_candidate: Open,
        seeds: Iterator[int],
        find_floor: Callable[[Sequence[Timing]], float] = lambda equals: 0.0,
    ) -> TimingResult:
        """`find_floor`: the problem's noise floor, given its A/A pairs of this measurement."""
        with pin_to_cores(self._device.evaluator_cores), open_baseline() as opened:
            baseline = self._prepare(opened)
            baseline_us = self._warm_up(baseline, seeds)
            before = self._measure_equals(name, baseline, open_baseline, seeds, baseline_us)
            with open_candidate() as opened_too:
                candidate = self._prepare(opened_too)
                self._warm_up(candidate, seeds)
                for attempt in range(1, self._plan.attempts + 1):  # noqa: B007 - the last one counts
                    pairs, conditions = self._measure_pairs(baseline, candidate, seeds, baseline_us)
                    if not conditions.disturbed:
                        break
                has_lost_pinned = candidate.has_lost_pinned()
            await_idle(self._device)
            after = self._measure_equals(name, baseline, open_baseline, seeds, baseline_us)
        wrong = OVERWRITTEN if has_lost_pinned else self._chosen.find_wrong()
        floor = max(find_floor(self._equal), find_device_floor("cuda", baseline_us))
        windows = Windows(
            blocks=tuple(pairs), before=before, after=after, program_us=statistics.median(self._program_us)
        )
        result = confirm_windows(name, windows, floor)
        timing = replace(result.timing, conditions=conditions, attempts=attempt)
        if wrong is not None:
            finding = Finding(check="timed_call", severity="fatal", message=wrong)
            return TimingResult(timing=timing, outcome=Outcome.SUSPECT, message=wrong, findings=(finding,))
        return mark_disturbed_unreliable(replace(result, timing=timing))

    def _prepare(self, session: ModelSession) -> WindowSession:
        if not isinstance(session, WindowSession):
            raise HarnessError("window timing needs a GPU session")
        if not self._reference.plan.timed_outputs:
            session.take_samples()
        return session

    def _warm_up(self, session: WindowSession, seeds: Iterator[int]) -> float:
        """The shortest reported time, in us; more calls while outputs come in new memory."""
        times: list[float] = []
        while len(times) < self._plan.warmup_calls or (session.saw_new_memory and len(times) < MAX_WARMUP_CALLS):
            times.append(self._call(session, self._reference.make_timed_inputs(next(seeds))).called.claim_us)
        return min(times)

    def _measure_equals(
        self, name: str, baseline: WindowSession, open_baseline: Open, seeds: Iterator[int], baseline_us: float
    ) -> tuple[Block, ...]:
        count = min(max(int(EQUAL_S * 1e6 / (2 * baseline_us)), LEAST_EQUAL_PAIRS), EQUAL_PAIRS)
        pairs = []
        with open_baseline() as opened:
            other = self._prepare(opened)
            self._warm_up(other, seeds)
            sampler = ConditionSampler(self._device, load_matters=False)
            for _ in range(count):
                pairs.append(self._measure_pair(baseline, other, self._reference.make_timed_inputs(next(seeds)))[0])
                sampler.sample()
        await_idle(self._device)
        self._equal.append(replace(summarise_blocks(name, tuple(pairs), 0.0), conditions=sampler.conclude()))
        return tuple(pairs)

    def _measure_pairs(
        self, baseline: WindowSession, candidate: WindowSession, seeds: Iterator[int], baseline_us: float
    ) -> tuple[list[Block], Conditions]:
        sampler = ConditionSampler(self._device, load_matters=False)
        pairs: list[Block] = []
        began_s = time.monotonic()
        while not self._is_enough(pairs, time.monotonic() - began_s, baseline_us):
            seed = next(seeds)
            block, theirs, mine = self._measure_pair(baseline, candidate, self._reference.make_timed_inputs(seed))
            pairs.append(block)
            self._chosen.note(seed, mine, theirs)
            if mine.sample is None and self._pins < MAX_PINS and self._random.random() < KEPT_SHARE:
                candidate.pin(mine.outputs)
                self._pins += 1
            sampler.sample()
        return pairs, sampler.conclude()

    def _is_enough(self, pairs: Sequence[Block], spent_s: float, baseline_us: float) -> bool:
        least = self._plan.min_blocks if baseline_us < 1e6 else self._plan.min_blocks_when_slow
        if len(pairs) < least:
            if len(pairs) >= HOPELESS_PAIRS and is_hopeless(pairs):
                return True
            may_end = len(pairs) >= self._plan.min_blocks_when_slow and spent_s > self._plan.budget_s
            return may_end and (is_hopeless(pairs) or spent_s > PATIENCE * self._plan.budget_s)
        if len(pairs) >= MAX_PAIRS or spent_s > self._plan.budget_s:
            return True
        floor = find_device_floor("cuda", baseline_us)
        return len(pairs) % ASK_EVERY == 0 and is_precise_enough(pairs, self._plan.wanted_half_width, floor)

    def _measure_pair(
        self, baseline: WindowSession, other: WindowSession, inputs: tuple[Any, ...]
    ) -> tuple[Block, Run, Run]:
        """Same inputs, random order; the other worker is stopped."""
        runs: dict[WindowSession, Run] = {}
        for session, opponent in self._random.sample(((baseline, other), (other, baseline)), 2):
            opponent.pause()
            try:
                runs[session] = self._call(session, inputs)
            finally:
                opponent.resume()
        theirs, mine = runs[baseline], runs[other]
        if theirs.times is None or mine.times is None:
            raise HarnessError("a timed call has no window times")
        self._program_us.append(theirs.times.go_us - theirs.called.claim_us)
        block = Block(
            calls=1,
            baseline_claim_us=theirs.called.claim_us,
            candidate_claim_us=mine.called.claim_us,
            baseline_judge_us=theirs.judge_us,
            candidate_judge_us=mine.judge_us,
            baseline_wake_us=theirs.times.wake_us,
            candidate_wake_us=mine.times.wake_us,
            baseline_snapshot_us=theirs.times.snapshot_us,
            candidate_snapshot_us=mine.times.snapshot_us,
        )
        return block, theirs, mine

    def _call(self, session: WindowSession, inputs: tuple[Any, ...]) -> Run:
        """Raises CandidateFailure (suspect) for outputs of another form."""
        session.reset_state()
        run = session.call(inputs, self._device)
        if not run.taken:
            message = "a timed call returned outputs of another form than untimed calls"
            raise CandidateFailure(
                Outcome.SUSPECT, message, (Finding(check="timed_call", severity="fatal", message=message),)
            )
        return run


def await_idle(device: Device) -> None:
    """Raises HarnessError after SETTLE_S."""
    if not device.await_quiet(SETTLE_S):
        raise HarnessError(f"{device.name} was not idle within {SETTLE_S:g} s; end other programs that use it")
